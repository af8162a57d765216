//! MPI, made safe: the border to the library, and the third file with `unsafe`.
//!
//! rsmpi's own non-blocking calls borrow their buffers for a scope. A transport's sends outlive every scope: they must own
//! what they send. So here a [`Sending`] and a [`Receiving`] hold their buffer until MPI is done with it, and leak it
//! rather than free it under MPI's hands. Beside MPI there is memory shared between the processes of a host ([`Window`]); it
//! is handed out as atomics, so that whoever uses it needs no `unsafe`.
//!
//! # Rules
//! 1. Everything here is `!Send`: MPI was initialised for one thread (funneled), and handles stay on it. Only the memory of
//!    a window may be seen by others.
//! 2. A buffer that MPI knows is owned by its request and is neither moved nor freed before the request is complete.
//! 3. Errors are returned (`MPI_ERRORS_RETURN`), with what MPI says about them.
//!
//! Nothing here knows packets, ranks' states or protocols.
#![expect(unsafe_code, reason = "calls to a C library; the rules above say what makes them sound")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use mpi::ffi;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::wire::bulk::{Block, Shared};

/// A failed call: which, and what MPI says.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {why}")]
pub(crate) struct MpiError {
    pub(crate) call: &'static str,
    pub(crate) why: String,
}

fn check(call: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: MPI writes at most MPI_MAX_ERROR_STRING bytes, and their number.
    let explained = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let length = if explained == 0 { length.max(0) as usize } else { 0 };
    Err(MpiError { call, why: String::from_utf8_lossy(&text[..length.min(text.len())]).into_owned() })
}

/// Calls MPI; the error carries the function's name.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        check(stringify!($function), ffi::$function($($argument),*))
    };
}

/// Tells whether the calling thread may call MPI.
pub(crate) fn is_main_thread() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag.
    unsafe { ffi::MPI_Is_thread_main(&raw mut flag) };
    flag != 0
}

/// Tells whether the process may have threads that do not call MPI.
pub(crate) fn may_have_threads() -> bool {
    mpi::environment::threading_support() >= mpi::Threading::Funneled
}

/// Tells whether MPI has been started in this process.
pub(crate) fn is_initialised() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag; the call is allowed at any time.
    unsafe { ffi::MPI_Initialized(&raw mut flag) };
    flag != 0
}

/// Tells whether MPI has ended in this process.
pub(crate) fn is_finalized() -> bool {
    let mut flag: c_int = 0;
    // SAFETY: MPI writes the flag; the call is allowed at any time.
    unsafe { ffi::MPI_Finalized(&raw mut flag) };
    flag != 0
}

/// Ends all processes of the job at once.
///
/// By MPI's world and no other communicator: that is the launcher's affair, while for others MPICH 4.0 waits for messages to
/// processes that may not take them any more.
pub(crate) fn abort(code: u8) -> ! {
    // SAFETY: MPI runs; its world lives as long.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, c_int::from(code)) };
    std::process::exit(code.into());
}

/// Ends this process at once, from any thread. The launcher then ends what is left of the job.
pub(crate) fn end_process() -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: the C library's; nothing runs after it.
    unsafe { _exit(1) }
}

/// The longest message: MPI counts in `int`, and what lies below may count less (Linux copies some bytes less at a time).
const PIECE_BYTES: usize = 1 << 30;
/// The tag of no message: a probe that finds one looks no further (Open MPI).
const NEVER_SENT: c_int = 0;
/// Between two tests of what takes long.
const TURN: Duration = Duration::from_micros(50);
/// Time that an operation goes on after a process is gone: its messages may be under way.
const GRACE: Duration = Duration::from_secs(1);

/// A tag, and the length at which what travels under it is cut into messages. The same on both sides.
#[derive(Clone, Copy)]
pub(crate) struct Channel {
    tag: u16,
    piece_bytes: usize,
}

impl Channel {
    pub(crate) const fn new(tag: u16) -> Channel {
        Channel { tag, piece_bytes: PIECE_BYTES }
    }

    /// A channel of short messages, each of which takes little time.
    pub(crate) const fn cut_at(tag: u16, piece_bytes: usize) -> Channel {
        Channel { tag, piece_bytes }
    }
}

/// Says that a process is gone, from any thread: whoever waits for all processes should not wait for ever.
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

/// A communicator of our own.
pub(crate) struct Communicator {
    handle: ffi::MPI_Comm,
    alarm: Alarm,
    /// No message is longer; the same for all processes.
    piece_bytes: usize,
    /// An operation was given up: MPI still waits for it.
    given_up: Cell<bool>,
    /// Rule 1.
    here: PhantomData<Rc<()>>,
}

impl Communicator {
    /// A duplicate of `of`: messages of the two never meet. Collective.
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

    /// Pieces are so long, for a test that has less than a gigabyte to send.
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

    /// To be raised when a process is gone.
    pub(crate) fn alarm(&self) -> Alarm {
        self.alarm.clone()
    }

    /// MPI cannot be ended in order any more.
    pub(crate) fn give_up(&self) {
        self.given_up.set(true);
    }

    /// Tells whether MPI cannot be ended in order any more.
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

    /// Starts to send bytes, which are kept until they have left.
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
        // Also if one did not start: MPI may read the others.
        let sending = Sending { requests, bytes: Some(bytes) };
        started.map(|()| sending)
    }

    fn start_send(&self, to: u32, tag: u16, piece: &[u8]) -> Result<Request, MpiError> {
        let (mut request, count) = (MaybeUninit::uninit(), count_of(piece.len())?);
        // SAFETY: the bytes are shared, so nobody writes them, and the caller's `Sending` holds on to them (rule 2).
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

    /// Starts to receive the next piece of what is to come. False if there is none.
    pub(crate) fn receive_next(
        &self,
        from: u32,
        channel: Channel,
        receiving: &mut Receiving,
    ) -> Result<bool, MpiError> {
        let Some((at, bytes)) = receiving.next_piece(self.piece_bytes(channel)) else { return Ok(false) };
        receiving.requests.push(self.start_receive(from as c_int, channel.tag, at, bytes)?);
        receiving.started += bytes;
        Ok(true)
    }

    /// Starts to receive up to `bytes` bytes, not more than a piece, from anybody.
    pub(crate) fn receive_any(&self, channel: Channel, bytes: usize) -> Result<Receiving, MpiError> {
        let mut receiving = Receiving::of(bytes, 1);
        let piece = receiving.next_piece(self.piece_bytes(channel));
        let (start, _) = piece
            .filter(|&(_, piece)| piece == bytes)
            .expect("a message of unknown length comes in one piece");
        // SAFETY: MPI's own constant.
        let any = unsafe { ffi::RSMPI_ANY_SOURCE };
        receiving.requests.push(self.start_receive(any, channel.tag, start, bytes)?);
        receiving.started = bytes;
        Ok(receiving)
    }

    /// The caller's `Receiving` owns the memory that `start` points to, `bytes` long.
    fn start_receive(
        &self,
        from: c_int,
        tag: u16,
        start: *mut u8,
        bytes: usize,
    ) -> Result<Request, MpiError> {
        let (mut request, count) = (MaybeUninit::uninit(), count_of(bytes)?);
        // SAFETY: as the caller says (rule 2).
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

    /// Lets MPI work on whatever it has under way. A test of one request need not.
    pub(crate) fn progress(&self) -> Result<(), MpiError> {
        let mut flag: c_int = 0;
        // SAFETY: MPI writes the flag; nobody asks for the status.
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

    /// Gathers the bytes of every process, in the order of their ranks. Collective; waits for everybody.
    pub(crate) fn all_say(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, MpiError> {
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
        // An empty vector points nowhere, which some MPIs take for `MPI_IN_PLACE`.
        let mut own = Vec::with_capacity(mine.len().max(1));
        own.extend_from_slice(mine);
        let (mut all, mut request) = (vec![0u8; total], MaybeUninit::uninit());
        // SAFETY: `all` has room for all lengths, one after the other, as `starts` says; everything is kept (rule 2).
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

    /// Waits for an operation of all processes, and hands back what it needs. Given up, that is leaked (rule 2).
    fn wait<T>(&self, call: &'static str, mut request: Request, needs: T) -> Result<T, MpiError> {
        let needs = ManuallyDrop::new(needs);
        self.until(call, || request.test())?;
        Ok(ManuallyDrop::into_inner(needs))
    }

    /// Tests until it is so; kinder to the vCPU the longer it takes. Gives up some time after the alarm.
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
                    std::thread::sleep(TURN);
                    if self.alarm.raised() {
                        left = left.saturating_sub(TURN);
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
        // SAFETY: the handle is ours and used nowhere else. A request that is under way keeps what it needs.
        unsafe { ffi::MPI_Comm_free(&raw mut self.handle) };
    }
}

/// MPI counts in `int`.
fn count_of(bytes: usize) -> Result<c_int, MpiError> {
    let why = || format!("{bytes} bytes are more than one MPI message can carry, {} bytes", c_int::MAX);
    c_int::try_from(bytes).map_err(|_| MpiError { call: "send or receive", why: why() })
}

/// Something under way.
pub(crate) struct Request {
    handle: ffi::MPI_Request,
    source: u32,
    bytes: usize,
    complete: bool,
    /// Rule 1.
    here: PhantomData<Rc<()>>,
}

impl Request {
    fn new(handle: ffi::MPI_Request) -> Request {
        Request { handle, source: 0, bytes: 0, complete: false, here: PhantomData }
    }

    /// Tells whether it is complete; lets MPI work on it.
    #[inline]
    pub(crate) fn test(&mut self) -> Result<bool, MpiError> {
        if self.complete {
            return Ok(true);
        }
        let mut flag: c_int = 0;
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        // SAFETY: the request is under way; MPI writes flag and status. A zeroed status is a valid C struct.
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

/// The pieces of what is under way together, in order.
#[derive(Default)]
struct Requests {
    pieces: Vec<Request>,
    /// Number of pieces that are known to be complete.
    complete: usize,
}

impl Requests {
    fn push(&mut self, piece: Request) {
        self.pieces.push(piece);
    }

    /// Tells whether all are complete; lets MPI work on the first that is not.
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

/// Bytes that are leaving.
pub(crate) struct Sending {
    requests: Requests,
    bytes: Option<Arc<dyn Shared>>,
}

impl Sending {
    /// Tells whether they have left: the memory is free again.
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
            // Rule 2: better lost than freed while MPI reads it.
            let _leaked = ManuallyDrop::new(self.bytes.take());
        }
    }
}

/// Messages that are leaving, in the order in which they were sent.
#[derive(Default)]
pub(crate) struct Sendings {
    queue: VecDeque<Sending>,
    bytes: usize,
    /// Number that have left since the start.
    left: u64,
}

impl Sendings {
    pub(crate) fn push(&mut self, sending: Sending) {
        self.bytes += sending.len();
        self.queue.push_back(sending);
    }

    /// Lets go of what has left. True if everything has.
    pub(crate) fn settle(&mut self) -> Result<bool, MpiError> {
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

    /// Number of messages that have left since the start.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Bytes that have not left.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes that are coming.
pub(crate) struct Receiving {
    requests: Requests,
    buffer: Option<Buffer>,
    /// Bytes that are to come, and those of the pieces that are awaited.
    bytes: usize,
    started: usize,
}

impl Receiving {
    /// Memory for what is to come; no piece of it is awaited yet.
    pub(crate) fn of(bytes: usize, alignment: u8) -> Receiving {
        let buffer = Some(Buffer::with_capacity(bytes, alignment));
        Receiving { requests: Requests::default(), buffer, bytes, started: 0 }
    }

    /// Where the next piece goes, and its length.
    fn next_piece(&mut self, piece_bytes: usize) -> Option<(*mut u8, usize)> {
        let left = self.bytes - self.started;
        let start = self.buffer.as_mut().filter(|_| left > 0)?.start();
        Some((start.wrapping_add(self.started), piece_bytes.min(left)))
    }

    /// Tells whether the pieces that are awaited have come.
    #[inline]
    pub(crate) fn test(&mut self) -> Result<bool, MpiError> {
        self.requests.test()
    }

    /// The sender and what it sent. Only once [`test`](Self::test) has said that all of it came.
    pub(crate) fn take(mut self) -> (u32, Block) {
        assert!(self.requests.are_complete() && self.started == self.bytes, "it has come");
        let buffer = self.buffer.take().expect("it is taken once");
        let pieces = &self.requests.pieces;
        let (source, bytes) =
            (pieces.first().map_or(0, |piece| piece.source), pieces.iter().map(|piece| piece.bytes).sum());
        // SAFETY: MPI has written so many bytes of the buffer: all pieces but the last are whole.
        (source, unsafe { buffer.filled(bytes) })
    }
}

/// Tests after which a receive that was to be taken back is left to MPI.
const CANCEL_TESTS: u32 = 1000;

impl Drop for Receiving {
    /// Takes the receive back. One that has met its message cannot be, and may never be complete.
    fn drop(&mut self) {
        if self.requests.are_complete() || is_finalized() {
            return;
        }
        for piece in self.requests.pieces.iter_mut().filter(|piece| !piece.complete) {
            // SAFETY: the request is under way.
            unsafe { ffi::MPI_Cancel(&raw mut piece.handle) };
        }
        let taken_back = (0..CANCEL_TESTS).any(|_| self.requests.test().unwrap_or(false));
        if !taken_back {
            // Rule 2: better lost than freed while MPI may write it.
            let _leaked = ManuallyDrop::new(self.buffer.take());
        }
    }
}

/// Memory that MPI writes: a vector's room, not its contents yet.
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

    /// The block of so many bytes; what is left over of a number is cut off.
    ///
    /// # Safety
    /// So many bytes, from the start on, have been written.
    unsafe fn filled(self, bytes: usize) -> Block {
        // SAFETY: the caller's; the room was made for at least as many numbers.
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

/// A file's memory, mapped for as long as this lives.
pub(crate) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is only ever seen as atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `bytes` bytes of a file that has them, and that nobody makes shorter.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        Ok(Mapping { start: start.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; whoever looks into it keeps the mapping. It fails for no mapping of ours.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// The first line of a part: the state of its owner's bed.
const LINE_BYTES: usize = 64;

/// Memory shared by the processes of a host: a part of each.
pub(crate) struct Window {
    parts: Vec<Mapping>,
}

impl Window {
    /// The bytes of a part with so many words.
    pub(crate) fn part_bytes(words: usize) -> usize {
        LINE_BYTES + words * 8
    }

    /// Parts are whole lines.
    pub(crate) fn new(parts: Vec<Mapping>) -> Arc<Window> {
        assert!(parts.iter().all(|part| part.bytes >= LINE_BYTES), "every part has a bed");
        Arc::new(Window { parts })
    }

    /// The state of a process' bed.
    #[inline]
    pub(crate) fn bed(&self, process: u32) -> &AtomicU32 {
        // SAFETY: the first line of each part, mapped as long as this lives, aligned to pages, and only seen so.
        unsafe { AtomicU32::from_ptr(self.parts[process as usize].start.cast()) }
    }

    /// Some words of a process' part.
    pub(crate) fn words(self: &Arc<Window>, process: u32, range: std::ops::Range<usize>) -> Words {
        let part = &self.parts[process as usize];
        assert!(
            range.start <= range.end && Window::part_bytes(range.end) <= part.bytes,
            "they are in its part"
        );
        let start = part.start.wrapping_add(Window::part_bytes(range.start));
        Words { start: start.cast(), count: range.len(), _window: self.clone() }
    }
}

/// Words of shared memory, as a slice.
pub(crate) struct Words {
    start: *const AtomicU64,
    count: usize,
    _window: Arc<Window>,
}

impl std::ops::Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `Window::words` looked at the bounds; the memory is mapped as long as the window, which this keeps, is
        // aligned, and is seen as atomics by everybody.
        unsafe { std::slice::from_raw_parts(self.start, self.count) }
    }
}
