//! What the control file of the package says that is not written in `packaging`.

use std::path::Path;

use crate::shell;

/// Packages that this version of weir has had.
const REVISION: u32 = 1;

pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) architecture: String,
    pub(crate) maintainer: String,
    /// What the binary needs, as `Depends` has it.
    pub(crate) depends: String,
    /// Seconds since 1970 of everything in the package.
    pub(crate) epoch: u64,
}

impl Facts {
    pub(crate) fn gather(weir: &Path, folder: &Path) -> Result<Facts, String> {
        Ok(Facts {
            version: format!("{}-{REVISION}", env!("CARGO_PKG_VERSION")),
            architecture: said_by("dpkg", &["--print-architecture"])?,
            maintainer: maintainer()?,
            depends: depends(weir, folder)?,
            epoch: epoch()?,
        })
    }

    /// The time of the package in the form of a Debian changelog.
    pub(crate) fn date(&self) -> Result<String, String> {
        said_by("date", &["--utc", "--rfc-email", "--date", &format!("@{}", self.epoch)])
    }
}

fn said_by(program: &str, arguments: &[&str]) -> Result<String, String> {
    shell::output_of(&mut shell::program(program, arguments)).map(|text| text.trim().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "these variables are the interface of such tools")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn epoch() -> Result<u64, String> {
    let seconds = match environment("SOURCE_DATE_EPOCH") {
        Some(seconds) => seconds,
        None => said_by("git", &["log", "-1", "--format=%ct"])?,
    };
    let why = || format!("\"{seconds}\" is no time: SOURCE_DATE_EPOCH is in seconds since 1970");
    seconds.parse().map_err(|_| why())
}

/// Whoever builds the package for others names himself, as for any Debian tool.
fn maintainer() -> Result<String, String> {
    match (environment("DEBFULLNAME"), environment("DEBEMAIL")) {
        (Some(name), Some(email)) => Ok(format!("{name} <{email}>")),
        _ => said_by("git", &["log", "-1", "--format=%an <%ae>"]),
    }
}

/// The packages of the libraries that the binary is linked with, with the versions that have the
/// symbols it uses.
fn depends(weir: &Path, folder: &Path) -> Result<String, String> {
    // it insists on a source package around it
    let source = folder.join("debian");
    std::fs::create_dir_all(&source)
        .and_then(|()| {
            let control = "Source: weir\n\nPackage: weir\nArchitecture: any\nDescription: weir\n";
            std::fs::write(source.join("control"), control)
        })
        .map_err(|e| format!("{}: {e}", source.display()))?;
    let mut tool = shell::program("dpkg-shlibdeps", &["-O"]);
    let said = shell::output_of(tool.arg("-e").arg(weir).current_dir(folder))?;
    let line = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    line.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps names no libraries: {said}"))
}
