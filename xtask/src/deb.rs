//! `cargo x deb`: a Debian package of what cargo builds and `packaging` describes. The same commit,
//! built in the same place by the same tools, gives the same bytes: every time in the package is
//! that of the commit, or `SOURCE_DATE_EPOCH`.

mod facts;
mod stage;
mod third_party;

use std::path::{Path, PathBuf};

use crate::{Done, shell};
use facts::Facts;

pub(crate) fn run(arguments: &[String]) -> Done {
    let weir = binary(arguments)?;
    println!("{}", pack(&weir)?.display());
    Ok(true)
}

/// The binary to pack: the one that the arguments name, or one built for speed.
pub(crate) fn binary(arguments: &[String]) -> Result<PathBuf, String> {
    match arguments {
        [] => shell::build_weir(),
        [option, file] if option == "--binary" => std::fs::canonicalize(file)
            .map_err(|e| format!("\"{file}\" cannot be read: {e}; --binary takes a built weir")),
        _ => Err("takes --binary FILE or nothing".to_owned()),
    }
}

/// Makes the package and returns where it is.
pub(crate) fn pack(weir: &Path) -> Result<PathBuf, String> {
    let tools =
        || shell::present("dpkg-shlibdeps", &["--version"]) && shell::present("strip", &["-V"]);
    shell::ensure_packages(&["dpkg-dev", "binutils"], tools)
        .map_err(|line| format!("a tool is missing; run: {line}"))?;
    let folder = shell::target()?.join("debian");
    let staged = folder.join("weir");
    let _ = std::fs::remove_dir_all(&folder);
    let facts = Facts::gather(weir, &folder)?;
    stage::stage(weir, &staged, &facts)?;
    let package = folder.join(format!("weir_{}_{}.deb", facts.version, facts.architecture));
    let mut build = shell::program("dpkg-deb", &["--root-owner-group", "--build"]);
    build.arg(&staged).arg(&package).env("SOURCE_DATE_EPOCH", facts.epoch.to_string());
    // how many threads compress decides what the bytes are
    shell::output_of(build.env("DPKG_DEB_THREADS_MAX", "1"))?;
    Ok(package)
}
