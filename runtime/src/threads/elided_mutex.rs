//! A mutex that is elided where a rank has a single worker. The first of three places with `unsafe` (the others are
//! `tsc_clock.rs` and `transport/mpi/raw`).
//!
//! Most ranks have one worker, which is one thread. State that several workers of a rank would share is behind an
//! [`ElidedMutex`]. With several workers this is a mutex. With one worker, `lock` only checks that the caller is that
//! worker and that no guard is alive, which takes about 1 ns instead of 10 ns.
//!
//! | mode | `lock` by the owner | by another thread | while a guard is alive |
//! |---|---|---|---|
//! | alone | guard | panics | panics |
//! | shared | guard | guard | waits |
//!
//! Rules:
//! 1. An *alone* value is created for a [`Tag`]. Only the thread that has entered with the tag accesses the value
//!    ([`Owner::enter`]).
//! 2. No two threads have entered with a tag at the same time. Each tag is minted once, and only the thread that minted
//!    it enters with it. (A simulation is one thread.)

#[cfg(not(loom))]
pub(crate) use real::ElidedMutex;

#[cfg(loom)]
pub(crate) use modelled::{ElidedMutex, Owner, Restore};

/// The identity of one worker, or of all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Tag {
    /// A tag that no other worker has.
    #[cfg(not(loom))]
    pub(crate) fn mint() -> Tag {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let tag = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(tag != 0 && tag < Tag::BUSY.0, "4 billion workers have been started in this process");
        Tag(tag)
    }

    /// Values created for this tag are mutexes.
    pub(crate) const SHARED: Tag = Tag(u32::MAX);
    /// Marks a value with a live guard. No worker has this tag.
    #[cfg(not(loom))]
    const BUSY: Tag = Tag(u32::MAX - 1);
    /// The tag of a thread that has not entered.
    #[cfg(not(loom))]
    const NONE: Tag = Tag(0);
}

#[cfg(not(loom))]
#[expect(
    unsafe_code,
    reason = "the one place where exclusive access rests on a checked rule instead of the borrow checker"
)]
mod real {
    use std::cell::{Cell, UnsafeCell};
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Tag;

    thread_local! {
        static ENTERED: Cell<Tag> = const { Cell::new(Tag::NONE) };
    }

    /// A value for one worker, or for all workers of one rank.
    pub(crate) struct ElidedMutex<T> {
        owner: Tag,
        /// The tag of the thread that may take a guard without further checks: the owner's, or [`Tag::BUSY`] while a guard
        /// is alive.
        free_for: AtomicU32,
        lock: Mutex<()>,
        value: UnsafeCell<T>,
    }

    // SAFETY: in shared mode `value` is reached only through `lock`, since no thread enters with that tag. In alone mode
    // only the thread that has entered with `owner` reaches it (rule 1, checked in `lock`). That is one thread at a time
    // (rule 2, upheld by `Owner`, which alone can enter and never leaves the thread that minted it). Only that thread
    // changes `free_for`. `T: Send` because the value may be dropped on another thread.
    unsafe impl<T: Send> Sync for ElidedMutex<T> {}

    /// A thread's claim to a tag. It cannot be sent to another thread.
    pub(crate) struct Owner {
        tag: Tag,
        stays: PhantomData<*const ()>,
    }

    impl Owner {
        /// Mints a tag for this thread.
        pub(crate) fn new() -> Owner {
            Owner { tag: Tag::mint(), stays: PhantomData }
        }

        pub(crate) fn tag(&self) -> Tag {
            self.tag
        }

        /// Makes the calling thread the owner of the values created for this tag, and of no others.
        #[inline]
        pub(crate) fn enter(&self) {
            ENTERED.set(self.tag);
        }
    }

    /// Restores, when dropped, the tag that the thread had when this was created.
    pub(crate) struct Restore(Tag);

    impl Restore {
        pub(crate) fn later() -> Restore {
            Restore(ENTERED.get())
        }
    }

    impl Drop for Restore {
        fn drop(&mut self) {
            ENTERED.set(self.0);
        }
    }

    impl<T> ElidedMutex<T> {
        /// A value for the worker with the tag `owner`, or for all workers with [`Tag::SHARED`].
        pub(crate) fn new(owner: Tag, value: T) -> ElidedMutex<T> {
            let free_for = AtomicU32::new(owner.0);
            ElidedMutex { owner, free_for, lock: Mutex::new(()), value: UnsafeCell::new(value) }
        }

        /// Exclusive access. Blocks in shared mode while another thread has it.
        ///
        /// # Panics
        /// In alone mode, if the thread has not entered with the tag or already holds a guard: a defect of the runtime.
        #[inline]
        pub(crate) fn lock(&self) -> Guard<'_, T> {
            if self.free_for.load(Ordering::Relaxed) != ENTERED.get().0 {
                return self.lock_shared();
            }
            self.free_for.store(Tag::BUSY.0, Ordering::Relaxed);
            Guard { mutex: self, held: None, access: PhantomData }
        }

        /// Exclusive access while `act` runs, with the fewest possible instructions in alone mode.
        ///
        /// # Panics
        /// As [`lock`](Self::lock).
        #[inline(always)]
        pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
            let me = ENTERED.get();
            if self.free_for.load(Ordering::Relaxed) != me.0 {
                return self.with_shared(act);
            }
            self.free_for.store(Tag::BUSY.0, Ordering::Relaxed);
            let _held = Held { free_for: &self.free_for, me };
            // SAFETY: as in `Guard::deref_mut`: `free_for` named the owner on the one thread that may touch the value, and
            // it is `BUSY` until `act` has returned.
            act(unsafe { &mut *self.value.get() })
        }

        #[inline(never)]
        fn with_shared<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
            act(&mut self.lock_shared())
        }

        #[inline]
        fn lock_shared(&self) -> Guard<'_, T> {
            if self.owner != Tag::SHARED {
                self.refuse();
            }
            // A panic under the lock ends the run. The value it left is read only to report the failure.
            let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            Guard { mutex: self, held: Some(held), access: PhantomData }
        }

        #[cold]
        fn refuse(&self) -> ! {
            assert!(ENTERED.get() == self.owner, "a rank with one worker is touched by that worker only");
            panic!("no guard is alive when a worker takes one");
        }
    }

    /// Exclusive access to an [`ElidedMutex`] value, until dropped.
    pub(crate) struct Guard<'a, T> {
        mutex: &'a ElidedMutex<T>,
        held: Option<MutexGuard<'a, ()>>,
        /// Lets threads share a guard only where they may share a `&mut T`.
        access: PhantomData<&'a mut T>,
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            // SAFETY: this guard is the only one alive. In shared mode it holds the mutex. In alone mode `free_for` named
            // the owner when the guard was created, on the one thread that may create one.
            unsafe { &*self.mutex.value.get() }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: as in `deref`, and `&mut self` excludes other borrows through this guard.
            unsafe { &mut *self.mutex.value.get() }
        }
    }

    /// Access in alone mode, until dropped.
    struct Held<'a> {
        free_for: &'a AtomicU32,
        me: Tag,
    }

    impl Drop for Held<'_> {
        #[inline]
        fn drop(&mut self) {
            self.free_for.store(self.me.0, Ordering::Relaxed);
        }
    }

    impl<T> Drop for Guard<'_, T> {
        #[inline]
        fn drop(&mut self) {
            if self.held.is_none() {
                self.mutex.free_for.store(self.mutex.owner.0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(not(loom))]
pub(crate) use real::{Owner, Restore};

#[cfg(loom)]
mod modelled {
    use super::Tag;

    /// Under loom there is no alone mode.
    pub(crate) struct Owner;

    impl Owner {
        pub(crate) fn new() -> Owner {
            Owner
        }

        pub(crate) fn tag(&self) -> Tag {
            Tag::SHARED
        }

        pub(crate) fn enter(&self) {}
    }

    /// Under loom a thread has no tag to restore.
    pub(crate) struct Restore;

    impl Restore {
        pub(crate) fn later() -> Restore {
            Restore
        }
    }

    /// Under loom every value is a modelled mutex; the alone mode has no concurrency to model.
    pub(crate) struct ElidedMutex<T>(loom::sync::Mutex<T>);

    impl<T> ElidedMutex<T> {
        pub(crate) fn new(_owner: Tag, value: T) -> ElidedMutex<T> {
            ElidedMutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds a lock")
        }

        pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
            act(&mut self.lock())
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "touched by that worker only")]
    fn a_thread_that_has_not_entered_is_refused() {
        let worker = Owner::new();
        let mutex = ElidedMutex::new(worker.tag(), 1);
        let _ = mutex.lock();
    }

    #[test]
    #[should_panic(expected = "no guard is alive")]
    fn a_second_guard_is_refused() {
        let worker = Owner::new();
        worker.enter();
        let mutex = ElidedMutex::new(worker.tag(), 1);
        let _first = mutex.lock();
        let _second = mutex.lock();
    }

    #[test]
    #[should_panic(expected = "no guard is alive")]
    fn a_guard_while_the_value_is_in_use_is_refused() {
        let worker = Owner::new();
        worker.enter();
        let mutex = ElidedMutex::new(worker.tag(), 1);
        mutex.with(|_| drop(mutex.lock()));
    }

    #[test]
    fn a_value_is_free_again_after_a_panic() {
        let worker = Owner::new();
        worker.enter();
        let mutex = ElidedMutex::new(worker.tag(), 1);
        let panics = std::panic::AssertUnwindSafe(|| mutex.with(|_| panic!("for the test")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(*mutex.lock(), 1);
    }

    #[test]
    fn alone_and_shared_give_the_same_access() {
        let worker = Owner::new();
        worker.enter();
        for owner in [worker.tag(), Tag::SHARED] {
            let mutex = ElidedMutex::new(owner, 1);
            *mutex.lock() += 1;
            mutex.with(|value| *value += 1);
            assert_eq!(*mutex.lock(), 3);
        }
    }
}
