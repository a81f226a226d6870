//! Reading files an operator names, with bounds and with messages that say what is wrong.

use std::fs::File;
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::OnceLock;

use weir_policy::{Reading, Source};
use weir_units::{Bytes, limits};

/// The whole file, at most `most` bytes of it.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    read_from(File::open(path).map_err(|e| why(&e))?, most)
}

/// The same of a file that is open.
fn read_from(mut file: File, most: u64) -> Result<Vec<u8>, String> {
    let about = file.metadata().map_err(|e| why(&e))?;
    if about.is_dir() {
        return Err("it is a directory, not a file".to_owned());
    }
    let too_large = |size: u64| {
        format!(
            "it has {}, and the limit is {}: is it the right file?",
            Bytes::new(size),
            Bytes::new(most)
        )
    };
    if about.len() > most {
        return Err(too_large(about.len()));
    }
    let mut bytes = Vec::new();
    // a pipe or device has no length beforehand
    Read::by_ref(&mut file).take(most + 1).read_to_end(&mut bytes).map_err(|e| why(&e))?;
    if bytes.len() as u64 > most {
        return Err(too_large(most + 1));
    }
    Ok(bytes)
}

/// A file that weir has written itself, at most `most` bytes of it: a file and nothing else, so
/// that nobody waits for a pipe.
pub(crate) fn read_own(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if !about.is_file() => Err("it is not a file".to_owned()),
        Ok(_) => read(path, most),
        Err(error) => Err(why(&error)),
    }
}

/// Writes a file that holds what is nobody else's business, as [`replace`] does: its owner may
/// change it, the group may read it.
pub(crate) fn replace_own(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    replace_with(path, text.as_ref(), 0o640, File::sync_all)
}

/// The same of a file that only its owner may read, and that is worth nothing after the power went:
/// nobody waits for the disk.
pub(crate) fn replace_secret(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    replace_with(path, text.as_ref(), 0o600, |_| Ok(()))
}

fn replace_with(
    path: &Path,
    text: &[u8],
    mode: u32,
    sync: impl FnOnce(&File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let beside = path.with_extension(format!("weir-{}", std::process::id()));
    let _ = std::fs::remove_file(&beside);
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text)?;
        sync(&file)?;
        std::fs::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Makes the folder of such files.
pub(crate) fn own_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(path)
}

/// Takes what an earlier weir gave to everyone: the right to look into the folder.
pub(crate) fn close_folder(path: &Path) -> std::io::Result<()> {
    let about = std::fs::symlink_metadata(path)?;
    if about.is_dir() && about.permissions().mode() & 0o007 != 0 {
        let mode = about.permissions().mode() & 0o770;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Writes a file as a whole: beside it first, then renamed, so that a full disk, a crash or an
/// interruption leaves the old one, or none. A link stays a link, a device a device.
pub fn replace(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    let old = match std::fs::canonicalize(path) {
        Ok(path) => Some((std::fs::metadata(&path)?, path)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|(about, _)| !about.is_file()) {
        return std::fs::write(path, text);
    }
    let to = old.as_ref().map_or(path, |(_, path)| path);
    let beside = to.with_extension(format!("weir-{}", std::process::id()));
    let keep = |about: &std::fs::Metadata| std::fs::set_permissions(&beside, about.permissions());
    let written = std::fs::write(&beside, text)
        .and_then(|()| old.as_ref().map_or(Ok(()), |(about, _)| keep(about)))
        .and_then(|()| File::open(&beside)?.sync_all())
        .and_then(|()| std::fs::rename(&beside, to));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// The same, with the file's name before what went wrong.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    replace(path, text).map_err(|error| format!("{}: {}", path.display(), why_not_written(&error)))
}

/// Why a file cannot be read, in plain words.
pub fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied: check who may read it".to_owned(),
        ErrorKind::IsADirectory => "it is a directory, not a file".to_owned(),
        _ => error.to_string(),
    }
}

/// Why a file or folder cannot be written, in plain words, and what to do.
pub fn why_not_written(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such folder: create it first",
        ErrorKind::PermissionDenied => "permission denied: check who may write there",
        ErrorKind::IsADirectory => "it is a directory, not a file",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "a file is where a folder should be",
        ErrorKind::StorageFull => "the disk is full: free some space, or write elsewhere",
        ErrorKind::ReadOnlyFilesystem => "it is read-only: write elsewhere",
        _ => return error.to_string(),
    }
    .to_owned()
}

/// Opens a file of the policy.
type Opener = Box<dyn Fn(&Path) -> Result<File, String> + Send + Sync>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// From now on the files of a policy are opened so: a running link may not open them itself.
pub(crate) fn open_policies_by(opener: Opener) {
    let _ = OPENER.set(opener);
}

fn read_of_policy(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    match OPENER.get() {
        Some(open) => read_from(open(path)?, most),
        None => read(path, most),
    }
}

/// Reads a policy and the table that it names (whose place counts from the policy's folder).
pub fn policy(path: &Path) -> Result<Reading, String> {
    let name = path.display().to_string();
    let bytes =
        read_of_policy(path, limits::POLICY_BYTES).map_err(|why| format!("{name}: {why}"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut load = |table: &str| {
        let path = folder.join(table);
        let bytes = read_of_policy(&path, limits::SUBSCRIBER_BYTES)?;
        Ok(Source::new(path.display().to_string(), bytes))
    };
    let source = Source::new(&name, bytes);
    weir_policy::read(source.clone(), &mut load).map_err(|at| {
        let (line, column) = source.line_column(at);
        format!("{name}:{line}:{column}: it is not text: this byte is not UTF-8")
    })
}
