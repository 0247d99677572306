//! One cargo file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::faults::DiskFaults;
use crate::limits::{CARGO_FILES_OPEN_MAX, CARGO_PARTS_PER_CALL_MAX};

/// Files that are open for reading, oldest first. There may be more files than a process may have open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<Vec<(u64, Arc<File>)>>);

impl OpenFiles {
    fn get(&self, number: u64, path: &Path) -> io::Result<Arc<File>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = open.iter().find(|(of, _)| *of == number) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(path)?);
        if open.len() >= CARGO_FILES_OPEN_MAX {
            open.remove(0);
        }
        open.push((number, Arc::clone(&file)));
        Ok(file)
    }

    fn forget(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| *of != number);
    }
}

/// A cargo file that readers may use. When it is waste and the last reader that could need it is gone, it is
/// removed from the disk.
#[derive(Debug)]
pub(crate) struct CargoFile {
    pub number: u64,
    pub path: PathBuf,
    open: Arc<OpenFiles>,
    /// Where what was committed ends.
    end: AtomicU64,
    waste: AtomicBool,
}

impl CargoFile {
    pub(super) fn new(directory: &Path, number: u64, end: u64, open: &Arc<OpenFiles>) -> Arc<Self> {
        let path = directory.join(number.to_string());
        let (end, waste) = (AtomicU64::new(end), AtomicBool::new(false));
        Arc::new(Self { number, path, open: Arc::clone(open), end, waste })
    }

    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    pub(super) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// Reads `length` bytes from `at`.
    pub(super) fn read(&self, at: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.open.get(self.number, &self.path)?.read_exact_at(&mut bytes, at)?;
        Ok(bytes.into())
    }

    /// No commit names it any more.
    pub(super) fn discard(&self) {
        self.waste.store(true, Ordering::Relaxed);
    }
}

impl Drop for CargoFile {
    fn drop(&mut self) {
        if self.waste.load(Ordering::Relaxed) {
            self.open.forget(self.number);
            if let Err(error) = fs::remove_file(&self.path) {
                // It is tried again when the store is opened.
                tracing::warn!(path = %self.path.display(), %error, "a cargo file is left");
            }
        }
    }
}

/// The end of the file that is appended to.
#[derive(Debug)]
pub(super) struct Appender {
    file: File,
    faults: Option<Arc<DiskFaults>>,
}

impl Appender {
    /// Makes a new file, which is in its directory for good when this returns.
    pub(super) fn create(path: &Path, faults: Option<Arc<DiskFaults>>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        if let Some(directory) = path.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(Self { file, faults })
    }

    /// Goes on with a file behind `end`; what is there already was never acknowledged.
    pub(super) fn resume(
        path: &Path,
        end: u64,
        faults: Option<Arc<DiskFaults>>,
    ) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(Self { file, faults })
    }

    /// Appends all parts.
    pub(super) fn append(&mut self, parts: &[Bytes]) -> io::Result<()> {
        if let Some(faults) = &self.faults {
            // A full disk takes a part of what it is given.
            faults.cargo_write(|| {
                parts.first().map_or(Ok(()), |part| (&self.file).write_all(part))
            })?;
        }
        for parts in parts.chunks(CARGO_PARTS_PER_CALL_MAX) {
            let mut slices: Vec<IoSlice<'_>> =
                parts.iter().map(|part| IoSlice::new(part)).collect();
            let mut rest = slices.as_mut_slice();
            while !rest.is_empty() {
                match self.file.write_vectored(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => IoSlice::advance_slices(&mut rest, written),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Has everything on disk when it returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        if let Some(faults) = &self.faults {
            faults.cargo_sync()?;
        }
        self.file.sync_data()
    }
}
