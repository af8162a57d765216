//! Standard output of commands that also write files. A reader that leaves early, such as `head`, does not end them.

use std::io::{self, ErrorKind, Write};

/// Passes text on until the reader closes its pipe. If the command also writes files, the rest of the text is dropped, so
/// that the files are still written. Without files the command ends.
pub(crate) struct UntilClosed<'o> {
    out: &'o mut dyn Write,
    has_files: bool,
    is_closed: bool,
}

impl<'o> UntilClosed<'o> {
    pub(crate) fn new(out: &'o mut dyn Write, has_files: bool) -> Self {
        Self { out, has_files, is_closed: false }
    }

    /// What `done` is, or `dropped` if the reader has closed its pipe.
    fn or<T>(&mut self, done: io::Result<T>, dropped: T) -> io::Result<T> {
        match done {
            Err(error) if self.has_files && error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(dropped)
            }
            done => done,
        }
    }
}

impl Write for UntilClosed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.or(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.or(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads some bytes, and closes its pipe or fails.
    struct Reader(usize, ErrorKind);

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(self.1)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn beside_files_text_after_the_pipe_is_closed_is_dropped_and_a_full_disk_is_an_error() {
        let said = |why: ErrorKind, has_files: bool| {
            let mut reader = Reader(4, why);
            let mut out = UntilClosed::new(&mut reader, has_files);
            out.write_all(b"read").unwrap();
            out.write_all(b"not read").and_then(|()| out.flush()).map_err(|error| error.kind())
        };
        assert_eq!(said(ErrorKind::BrokenPipe, true), Ok(()));
        assert_eq!(said(ErrorKind::BrokenPipe, false), Err(ErrorKind::BrokenPipe));
        assert_eq!(said(ErrorKind::StorageFull, true), Err(ErrorKind::StorageFull));
    }
}
