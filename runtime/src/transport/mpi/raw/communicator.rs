//! A communicator of MPI: starts sends and receives, and runs collective operations.

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpi::ffi;

use super::request::{Receiving, Request, Requests, Sending};
use super::{MpiError, check, is_finalized};
use crate::wire::bulk::Shared;

/// Maximum bytes of a message: MPI counts in `int`, and lower layers may count less, as Linux does.
const PIECE_BYTES: usize = 1 << 30;
/// A tag without messages, for probes. A probe that found a message would stop there (Open MPI).
const NEVER_SENT: c_int = 0;
/// Time between two tests of a slow operation.
const TEST_INTERVAL: Duration = Duration::from_micros(50);
/// How long an operation goes on after a process is lost, because its messages may still be in flight.
const GRACE: Duration = Duration::from_secs(1);

/// A tag, and the length of the pieces into which its blocks are cut. Both must be equal on both sides.
#[derive(Clone, Copy)]
pub(crate) struct Channel {
    tag: u16,
    piece_bytes: usize,
}

impl Channel {
    pub(crate) const fn new(tag: u16) -> Channel {
        Channel { tag, piece_bytes: PIECE_BYTES }
    }

    /// A channel of short pieces, so that each takes little time.
    pub(crate) const fn cut_at(tag: u16, piece_bytes: usize) -> Channel {
        Channel { tag, piece_bytes }
    }
}

/// Reports from any thread that a process is lost, so that no operation waits for the process forever.
#[derive(Clone, Default)]
pub(crate) struct Alarm(Arc<AtomicBool>);

impl Alarm {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A communicator that only Caribou uses.
pub(crate) struct Communicator {
    handle: ffi::MPI_Comm,
    alarm: Alarm,
    /// Maximum bytes of a message; the same in all processes.
    piece_bytes: usize,
    /// An operation was given up, and MPI still waits for it.
    given_up: Cell<bool>,
    /// Makes the type `!Send` (rule 1).
    here: PhantomData<Rc<()>>,
}

impl Communicator {
    /// A duplicate of `of`, whose messages never mix with messages of `of`. Collective.
    pub(crate) fn duplicate(
        of: &impl mpi::traits::AsRaw<Raw = ffi::MPI_Comm>,
    ) -> Result<Communicator, MpiError> {
        let mut handle = MaybeUninit::uninit();
        // SAFETY: `of` is a live communicator; MPI writes the new handle before it returns success.
        let handle = unsafe {
            call!(MPI_Comm_dup(of.as_raw(), handle.as_mut_ptr()))?;
            handle.assume_init()
        };
        Communicator::own(handle, Alarm::default())
    }

    fn own(handle: ffi::MPI_Comm, alarm: Alarm) -> Result<Communicator, MpiError> {
        // SAFETY: the handle was just made.
        unsafe { call!(MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN))? };
        let given_up = Cell::new(false);
        Ok(Communicator { handle, alarm, piece_bytes: PIECE_BYTES, given_up, here: PhantomData })
    }

    /// Sets the length of pieces, for a test that sends less than a gigabyte.
    #[cfg(test)]
    pub(crate) fn cut_at(&mut self, bytes: usize) {
        self.piece_bytes = bytes;
    }

    /// The processes that share memory with this one, in the order of their ranks. Collective.
    pub(crate) fn host(&self) -> Result<Communicator, MpiError> {
        let mut handle = MaybeUninit::uninit();
        // SAFETY: as in `duplicate`.
        let handle = unsafe {
            call!(MPI_Comm_split_type(
                self.handle,
                ffi::RSMPI_COMM_TYPE_SHARED,
                self.rank() as c_int,
                ffi::RSMPI_INFO_NULL,
                handle.as_mut_ptr(),
            ))?;
            handle.assume_init()
        };
        Communicator::own(handle, self.alarm.clone())
    }

    /// The alarm to raise when a process is lost.
    pub(crate) fn alarm(&self) -> Alarm {
        self.alarm.clone()
    }

    /// Notes that MPI cannot be finalized in this process.
    pub(crate) fn give_up(&self) {
        self.given_up.set(true);
    }

    /// Tells whether MPI cannot be finalized in this process.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.get()
    }

    pub(crate) fn rank(&self) -> u32 {
        let mut rank: c_int = 0;
        // SAFETY: the communicator lives as long as `self`; MPI writes one integer.
        unsafe { ffi::MPI_Comm_rank(self.handle, &raw mut rank) };
        rank as u32
    }

    pub(crate) fn size(&self) -> u32 {
        let mut size: c_int = 0;
        // SAFETY: as in `rank`.
        unsafe { ffi::MPI_Comm_size(self.handle, &raw mut size) };
        size as u32
    }

    /// Starts to send bytes, and keeps them until they have left.
    pub(crate) fn send(
        &self,
        to: u32,
        channel: Channel,
        bytes: Arc<dyn Shared>,
    ) -> Result<Sending, MpiError> {
        let mut requests = Requests::default();
        let started = bytes.bytes().chunks(self.piece_bytes(channel)).try_for_each(|piece| {
            requests.push(self.start_send(to, channel.tag, piece)?);
            Ok(())
        });
        // Created even if one piece did not start, because MPI may read the other pieces.
        let sending = Sending::new(requests, bytes);
        started.map(|()| sending)
    }

    fn start_send(&self, to: u32, tag: u16, piece: &[u8]) -> Result<Request, MpiError> {
        let (mut request, count) = (MaybeUninit::uninit(), count_of(piece.len())?);
        // SAFETY: the bytes are shared, so nothing writes them, and the caller's `Sending` keeps them (rule 2).
        unsafe {
            call!(MPI_Isend(
                piece.as_ptr().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                c_int::from(tag),
                self.handle,
                request.as_mut_ptr(),
            ))?;
            Ok(Request::new(request.assume_init()))
        }
    }

    fn piece_bytes(&self, channel: Channel) -> usize {
        self.piece_bytes.min(channel.piece_bytes)
    }

    /// Starts to receive exactly `bytes` bytes from `from`, in memory of this alignment.
    pub(crate) fn receive(
        &self,
        from: u32,
        channel: Channel,
        bytes: usize,
        alignment: u8,
    ) -> Result<Receiving, MpiError> {
        let mut receiving = Receiving::of(bytes, alignment);
        while self.receive_next(from, channel, &mut receiving)? {}
        Ok(receiving)
    }

    /// Starts to receive the next piece. False if there is no further piece.
    pub(crate) fn receive_next(
        &self,
        from: u32,
        channel: Channel,
        receiving: &mut Receiving,
    ) -> Result<bool, MpiError> {
        let Some((at, bytes)) = receiving.next_piece(self.piece_bytes(channel)) else { return Ok(false) };
        receiving.starts(self.start_receive(from as c_int, channel.tag, at, bytes)?, bytes);
        Ok(true)
    }

    /// Starts to receive up to `bytes` bytes from any process, in one piece.
    pub(crate) fn receive_any(&self, channel: Channel, bytes: usize) -> Result<Receiving, MpiError> {
        let mut receiving = Receiving::of(bytes, 1);
        let piece = receiving.next_piece(self.piece_bytes(channel));
        let (start, _) = piece
            .filter(|&(_, piece)| piece == bytes)
            .expect("a message of unknown length comes in one piece");
        // SAFETY: MPI's own constant.
        let any = unsafe { ffi::RSMPI_ANY_SOURCE };
        receiving.starts(self.start_receive(any, channel.tag, start, bytes)?, bytes);
        Ok(receiving)
    }

    /// Starts to receive into `bytes` bytes at `start`, memory that the caller's `Receiving` must own.
    fn start_receive(
        &self,
        from: c_int,
        tag: u16,
        start: *mut u8,
        bytes: usize,
    ) -> Result<Request, MpiError> {
        let (mut request, count) = (MaybeUninit::uninit(), count_of(bytes)?);
        // SAFETY: by the contract of the caller (rule 2).
        unsafe {
            call!(MPI_Irecv(
                start.cast(),
                count,
                ffi::RSMPI_UINT8_T,
                from,
                c_int::from(tag),
                self.handle,
                request.as_mut_ptr(),
            ))?;
            Ok(Request::new(request.assume_init()))
        }
    }

    /// Lets MPI work on all operations in flight, because testing one request may work on that request only.
    pub(crate) fn progress(&self) -> Result<(), MpiError> {
        let mut flag: c_int = 0;
        // SAFETY: MPI writes the flag; the status is ignored.
        unsafe {
            call!(MPI_Iprobe(
                ffi::RSMPI_ANY_SOURCE,
                NEVER_SENT,
                self.handle,
                &raw mut flag,
                ffi::RSMPI_STATUS_IGNORE,
            ))
        }
    }

    /// Gathers the bytes of every process, in rank order. Collective; waits for all processes.
    pub(crate) fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, MpiError> {
        let size = self.size() as usize;
        let length = Box::new(count_of(mine.len())?);
        let (mut lengths, mut request) = (vec![0 as c_int; size], MaybeUninit::uninit());
        // SAFETY: one integer goes out, `size` come in; both are kept until the request is complete (rule 2).
        let request = unsafe {
            call!(MPI_Iallgather(
                (&raw const *length).cast(),
                1,
                ffi::RSMPI_INT32_T,
                lengths.as_mut_ptr().cast(),
                1,
                ffi::RSMPI_INT32_T,
                self.handle,
                request.as_mut_ptr(),
            ))?;
            Request::new(request.assume_init())
        };
        let (length, lengths) = self.wait("MPI_Iallgather", request, (length, lengths))?;
        let mut starts = Vec::with_capacity(size);
        let mut total = 0usize;
        for &length in &lengths {
            starts.push(count_of(total)?);
            total += length as usize;
        }
        if total == 0 {
            return Ok(vec![Vec::new(); size]);
        }
        // The pointer of an empty vector could be taken for `MPI_IN_PLACE` by some MPIs.
        let mut own = Vec::with_capacity(mine.len().max(1));
        own.extend_from_slice(mine);
        let (mut all, mut request) = (vec![0u8; total], MaybeUninit::uninit());
        // SAFETY: `all` has room for all lengths, one after the other, as `starts` says; all buffers are kept (rule 2).
        let request = unsafe {
            call!(MPI_Iallgatherv(
                own.as_ptr().cast(),
                *length,
                ffi::RSMPI_UINT8_T,
                all.as_mut_ptr().cast(),
                lengths.as_ptr(),
                starts.as_ptr(),
                ffi::RSMPI_UINT8_T,
                self.handle,
                request.as_mut_ptr(),
            ))?;
            Request::new(request.assume_init())
        };
        let (_, all, lengths, starts) = self.wait("MPI_Iallgatherv", request, (own, all, lengths, starts))?;
        let part = |(&start, &length): (&c_int, &c_int)| all[start as usize..][..length as usize].to_vec();
        Ok(starts.iter().zip(&lengths).map(part).collect())
    }

    /// Waits for a collective operation and returns its buffers. If the operation is given up, leaks them (rule 2).
    fn wait<T>(&self, call: &'static str, mut request: Request, needs: T) -> Result<T, MpiError> {
        let needs = ManuallyDrop::new(needs);
        self.until(call, || request.test())?;
        Ok(ManuallyDrop::into_inner(needs))
    }

    /// Repeats `test` until it returns true, with growing pauses. Gives up some time after the alarm.
    pub(crate) fn until(
        &self,
        call: &'static str,
        mut test: impl FnMut() -> Result<bool, MpiError>,
    ) -> Result<(), MpiError> {
        let (mut turns, mut left) = (0u32, GRACE);
        while !test()? {
            turns = turns.saturating_add(1);
            match turns {
                0..2000 => std::hint::spin_loop(),
                2000..4000 => std::thread::yield_now(),
                _ => {
                    std::thread::sleep(TEST_INTERVAL);
                    if self.alarm.raised() {
                        left = left.saturating_sub(TEST_INTERVAL);
                    }
                    if left.is_zero() {
                        self.given_up.set(true);
                        return Err(MpiError { call, why: "a process is gone".into() });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if is_finalized() {
            return;
        }
        // SAFETY: the handle is used nowhere else. A request in flight keeps what it needs.
        unsafe { ffi::MPI_Comm_free(&raw mut self.handle) };
    }
}

/// A number of bytes as `int`, in which MPI counts.
fn count_of(bytes: usize) -> Result<c_int, MpiError> {
    let why = || format!("{bytes} bytes are more than one MPI message can carry, {} bytes", c_int::MAX);
    c_int::try_from(bytes).map_err(|_| MpiError { call: "send or receive", why: why() })
}
