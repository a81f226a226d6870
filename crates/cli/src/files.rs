//! Reading files an operator names, with bounds and with messages that say what is wrong.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use weir_policy::{Reading, Source};
use weir_units::{Bytes, limits};

/// The whole file, at most `most` bytes of it.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut file = File::open(path).map_err(|e| why(&e))?;
    let about = file.metadata().map_err(|e| why(&e))?;
    if about.is_dir() {
        return Err("it is a directory, not a file".to_owned());
    }
    let too_large = |size: u64| {
        format!(
            "it has {}, and at most {} are read: is it the right file?",
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

/// An I/O error in plain words.
pub(crate) fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied: who may read it?".to_owned(),
        ErrorKind::IsADirectory => "it is a directory, not a file".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads a policy and the table that it names (whose place counts from the policy's folder).
pub(crate) fn policy(path: &Path) -> Result<Reading, String> {
    let name = path.display().to_string();
    let bytes = read(path, limits::POLICY_BYTES).map_err(|why| format!("{name}: {why}"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut load = |table: &str| {
        let path = folder.join(table);
        let bytes = read(&path, limits::SUBSCRIBER_BYTES)?;
        Ok(Source::new(path.display().to_string(), bytes))
    };
    let source = Source::new(&name, bytes);
    weir_policy::read(source.clone(), &mut load).map_err(|at| {
        let (line, column) = source.line_column(at);
        format!("{name}:{line}:{column}: it is not text: this byte is not UTF-8")
    })
}
