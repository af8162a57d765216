//! Messages in flight, each with the memory that MPI reads or writes until the message is complete (rule 2).

use std::collections::VecDeque;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::rc::Rc;
use std::sync::Arc;

use mpi::ffi;

use super::{MpiError, check, is_finalized};
use crate::wire::bulk::{Block, Shared};

/// One request in flight.
pub(super) struct Request {
    handle: ffi::MPI_Request,
    source: u32,
    bytes: usize,
    complete: bool,
    /// Makes the type `!Send` (rule 1).
    here: PhantomData<Rc<()>>,
}

impl Request {
    pub(super) fn new(handle: ffi::MPI_Request) -> Request {
        Request { handle, source: 0, bytes: 0, complete: false, here: PhantomData }
    }

    /// Tells whether the request is complete; lets MPI work on it.
    #[inline]
    pub(super) fn test(&mut self) -> Result<bool, MpiError> {
        if self.complete {
            return Ok(true);
        }
        let mut flag: c_int = 0;
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        // SAFETY: the request is in flight; MPI writes flag and status. A zeroed status is a valid C struct.
        unsafe {
            call!(MPI_Test(&raw mut self.handle, &raw mut flag, status.as_mut_ptr()))?;
            if flag != 0 {
                let mut bytes: c_int = 0;
                let status = status.assume_init();
                ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut bytes);
                self.complete = true;
                self.bytes = bytes.max(0) as usize;
                self.source = status.MPI_SOURCE.max(0) as u32;
            }
        }
        Ok(self.complete)
    }
}

/// The pieces of one transfer, in order.
#[derive(Default)]
pub(super) struct Requests {
    pieces: Vec<Request>,
    /// Number of pieces that are known to be complete.
    complete: usize,
}

impl Requests {
    pub(super) fn push(&mut self, piece: Request) {
        self.pieces.push(piece);
    }

    /// Tells whether all pieces are complete; lets MPI work on the first incomplete one.
    #[inline]
    fn test(&mut self) -> Result<bool, MpiError> {
        while let Some(piece) = self.pieces.get_mut(self.complete) {
            if !piece.test()? {
                return Ok(false);
            }
            self.complete += 1;
        }
        Ok(true)
    }

    fn are_complete(&self) -> bool {
        self.complete == self.pieces.len()
    }
}

/// A send in flight.
pub(crate) struct Sending {
    requests: Requests,
    bytes: Option<Arc<dyn Shared>>,
}

impl Sending {
    pub(super) fn new(requests: Requests, bytes: Arc<dyn Shared>) -> Sending {
        Sending { requests, bytes: Some(bytes) }
    }

    /// Tells whether the bytes have left, so that their memory is released.
    pub(crate) fn test(&mut self) -> Result<bool, MpiError> {
        self.requests.test()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.bytes().len())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.requests.are_complete() {
            // Rule 2: MPI may still read the memory, so it is leaked.
            let _leaked = ManuallyDrop::new(self.bytes.take());
        }
    }
}

/// Sends in flight, in the order of their start.
#[derive(Default)]
pub(crate) struct Sendings {
    queue: VecDeque<Sending>,
    bytes: usize,
    /// Number of sends that have left since the start.
    left: u64,
}

impl Sendings {
    pub(crate) fn push(&mut self, sending: Sending) {
        self.bytes += sending.len();
        self.queue.push_back(sending);
    }

    /// Releases the memory of complete sends. True if all are complete.
    pub(crate) fn reap(&mut self) -> Result<bool, MpiError> {
        while let Some(first) = self.queue.front_mut() {
            if !first.test()? {
                return Ok(false);
            }
            self.bytes -= first.len();
            self.left += 1;
            self.queue.pop_front();
        }
        Ok(true)
    }

    /// Number of sends that have left since the start.
    pub(crate) fn sent(&self) -> u64 {
        self.left
    }

    /// Bytes that have not left.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A receive in flight.
pub(crate) struct Receiving {
    requests: Requests,
    buffer: Option<Buffer>,
    /// Bytes to receive, and bytes whose receives were started.
    bytes: usize,
    started: usize,
}

impl Receiving {
    /// Allocates the memory for a receive, and starts no receive.
    pub(crate) fn of(bytes: usize, alignment: u8) -> Receiving {
        let buffer = Some(Buffer::with_capacity(bytes, alignment));
        Receiving { requests: Requests::default(), buffer, bytes, started: 0 }
    }

    /// The address of the next piece, and its length.
    pub(super) fn next_piece(&mut self, piece_bytes: usize) -> Option<(*mut u8, usize)> {
        let left = self.bytes - self.started;
        let start = self.buffer.as_mut().filter(|_| left > 0)?.start();
        Some((start.wrapping_add(self.started), piece_bytes.min(left)))
    }

    /// Adds the started receive of the next piece, of `bytes` bytes.
    pub(super) fn starts(&mut self, piece: Request, bytes: usize) {
        self.requests.push(piece);
        self.started += bytes;
    }

    /// Tells whether all started pieces have arrived.
    #[inline]
    pub(crate) fn test(&mut self) -> Result<bool, MpiError> {
        self.requests.test()
    }

    /// The sender and its block. All pieces must be started, and [`test`](Self::test) must have returned true.
    pub(crate) fn take(mut self) -> (u32, Block) {
        assert!(self.requests.are_complete() && self.started == self.bytes, "it has come");
        let buffer = self.buffer.take().expect("it is taken once");
        let pieces = &self.requests.pieces;
        let (source, bytes) =
            (pieces.first().map_or(0, |piece| piece.source), pieces.iter().map(|piece| piece.bytes).sum());
        // SAFETY: MPI has written `bytes` bytes of the buffer, because all pieces but the last are whole.
        (source, unsafe { buffer.filled(bytes) })
    }
}

/// Number of tests of a cancelled receive before it is left to MPI.
const CANCEL_TESTS: u32 = 1000;

impl Drop for Receiving {
    /// Cancels the receive. A receive that is already matched cannot be cancelled, and may never be complete.
    fn drop(&mut self) {
        if self.requests.are_complete() || is_finalized() {
            return;
        }
        for piece in self.requests.pieces.iter_mut().filter(|piece| !piece.complete) {
            // SAFETY: the request is in flight.
            unsafe { ffi::MPI_Cancel(&raw mut piece.handle) };
        }
        let taken_back = (0..CANCEL_TESTS).any(|_| self.requests.test().unwrap_or(false));
        if !taken_back {
            // Rule 2: MPI may still write the memory, so it is leaked.
            let _leaked = ManuallyDrop::new(self.buffer.take());
        }
    }
}

/// Memory that MPI writes: the capacity of a vector whose length is 0 until then.
enum Buffer {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

impl Buffer {
    fn with_capacity(bytes: usize, alignment: u8) -> Buffer {
        match alignment {
            1 => Buffer::One(Vec::with_capacity(bytes)),
            2 => Buffer::Two(Vec::with_capacity(bytes.div_ceil(2))),
            4 => Buffer::Four(Vec::with_capacity(bytes.div_ceil(4))),
            _ => Buffer::Eight(Vec::with_capacity(bytes.div_ceil(8))),
        }
    }

    fn start(&mut self) -> *mut u8 {
        match self {
            Buffer::One(room) => room.as_mut_ptr(),
            Buffer::Two(room) => room.as_mut_ptr().cast(),
            Buffer::Four(room) => room.as_mut_ptr().cast(),
            Buffer::Eight(room) => room.as_mut_ptr().cast(),
        }
    }

    /// The block of the first `bytes` bytes. An incomplete number at the end is cut off.
    ///
    /// # Safety
    /// The first `bytes` bytes must have been written.
    unsafe fn filled(self, bytes: usize) -> Block {
        // SAFETY: the caller's; the capacity is at least this number of numbers.
        unsafe {
            match self {
                Buffer::One(mut room) => {
                    room.set_len(bytes);
                    Block::One(room)
                }
                Buffer::Two(mut room) => {
                    room.set_len(bytes / 2);
                    Block::Two(room)
                }
                Buffer::Four(mut room) => {
                    room.set_len(bytes / 4);
                    Block::Four(room)
                }
                Buffer::Eight(mut room) => {
                    room.set_len(bytes / 8);
                    Block::Eight(room)
                }
            }
        }
    }
}
