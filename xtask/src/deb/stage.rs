//! The tree of the package, as dpkg unpacks it, and its control files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::facts::Facts;
use super::third_party;
use crate::shell;

const UNITS: &str = "usr/lib/systemd/system";
const DOCUMENTS: &str = "usr/share/doc/weir";
const MANUAL: &str = "usr/share/man/man1";
/// Where each shell looks for the completions of a command, and how it names them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("weir.bash", "usr/share/bash-completion/completions/weir"),
    ("_weir", "usr/share/zsh/vendor-completions/_weir"),
    ("weir.fish", "usr/share/fish/vendor_completions.d/weir.fish"),
];
/// Of packaging/debian, what dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Makes the tree.
pub(super) fn stage(weir: &Path, tree: &Path, facts: &Facts) -> Result<(), String> {
    let tree = Tree(tree.to_owned());
    binary(weir, &tree)?;
    pages(weir, &tree)?;
    tree.copy("packaging/weir@.service", &format!("{UNITS}/weir@.service"))?;
    tree.folder("etc/weir")?;
    documents(&tree, facts)?;
    tree.modes()?;
    control(&tree, facts)
}

struct Tree(PathBuf);

fn binary(weir: &Path, tree: &Tree) -> Result<(), String> {
    let path = tree.place("usr/bin/weir")?;
    let mut strip = shell::program("strip", &["--strip-unneeded", "-o"]);
    shell::output_of(strip.arg(&path).arg(weir)).map(|_| ())
}

/// The manual pages and the completions, which the binary itself writes.
fn pages(weir: &Path, tree: &Tree) -> Result<(), String> {
    let folder = tree.0.with_extension("pages");
    let mut write = shell::program(&weir.display().to_string(), &["pages"]);
    shell::output_of(write.arg(&folder))?;
    for (name, place) in COMPLETIONS {
        let path = folder.join(name);
        tree.write(place, &read(&path)?)?;
        fs::remove_file(&path).map_err(|e| said(&path, &e))?;
    }
    for path in listed(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        tree.write(&format!("{MANUAL}/{name}.gz"), &compressed(&read(&path)?)?)?;
    }
    Ok(())
}

fn documents(tree: &Tree, facts: &Facts) -> Result<(), String> {
    tree.copy("packaging/debian/copyright", &format!("{DOCUMENTS}/copyright"))?;
    let entry = format!(
        "weir ({}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {}  {}\n",
        facts.version,
        facts.maintainer,
        facts.date()?
    );
    let packed = [
        ("changelog.Debian.gz", entry.into_bytes()),
        ("changelog.gz", read(&shell::root().join("CHANGELOG.md"))?),
        ("third-party.gz", third_party::text()?.into_bytes()),
    ];
    for (name, bytes) in packed {
        tree.write(&format!("{DOCUMENTS}/{name}"), &compressed(&bytes)?)?;
    }
    for (from, to) in
        [("docs", DOCUMENTS.to_owned()), ("examples", format!("{DOCUMENTS}/examples"))]
    {
        for path in listed(&shell::root().join(from))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_file() {
                tree.write(&format!("{to}/{name}"), &read(&path)?)?;
            }
        }
    }
    Ok(())
}

/// What dpkg itself reads: written after the modes, sums and sizes of all else are final.
fn control(tree: &Tree, facts: &Facts) -> Result<(), String> {
    let files = tree.files("")?;
    let mut blocks = 0;
    let mut names = Vec::new();
    for path in &files {
        blocks += fs::metadata(path).map_err(|e| said(path, &e))?.size().div_ceil(1_024);
        names.push(path.strip_prefix(&tree.0).unwrap_or(path).to_owned());
    }
    let mut sums = shell::program("md5sum", &["--"]);
    let sums = shell::output_of(sums.args(&names).current_dir(&tree.0))?;
    tree.write("DEBIAN/md5sums", sums.as_bytes())?;
    let template = read(&shell::root().join("packaging/debian/control"))?;
    let control = String::from_utf8_lossy(&template)
        .replace("@VERSION@", &facts.version)
        .replace("@ARCHITECTURE@", &facts.architecture)
        .replace("@MAINTAINER@", &facts.maintainer)
        .replace("@DEPENDS@", &facts.depends)
        .replace("@SIZE@", &blocks.to_string());
    tree.write("DEBIAN/control", control.as_bytes())?;
    for script in SCRIPTS {
        tree.copy(&format!("packaging/debian/{script}"), &format!("DEBIAN/{script}"))?;
        tree.mode(&tree.0.join("DEBIAN").join(script), 0o755)?;
    }
    tree.mode(&tree.0.join("DEBIAN"), 0o755)
}

impl Tree {
    fn folder(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.0.join(path);
        fs::create_dir_all(&path).map_err(|e| said(&path, &e))?;
        Ok(path)
    }

    /// A path in the tree, of which the folder is there.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.folder(folder)?.join(name))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.place(path)?;
        fs::write(&path, bytes).map_err(|e| said(&path, &e))
    }

    /// Copies a file of the project.
    fn copy(&self, from: &str, to: &str) -> Result<(), String> {
        self.write(to, &read(&shell::root().join(from))?)
    }

    fn mode(&self, path: &Path, mode: u32) -> Result<(), String> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|e| said(path, &e))
    }

    /// Gives everything the mode that it has in any package, whatever the umask was here.
    fn modes(&self) -> Result<(), String> {
        let program = self.0.join("usr/bin/weir");
        for file in self.files("")? {
            self.mode(&file, if file == program { 0o755 } else { 0o644 })?;
        }
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            self.mode(&folder, 0o755)?;
            folders.extend(listed(&folder)?.into_iter().filter(|path| path.is_dir()));
        }
        Ok(())
    }

    /// All files below a folder of the tree.
    fn files(&self, folder: &str) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        for path in listed(&self.0.join(folder))? {
            if path.is_dir() {
                let inner = path.strip_prefix(&self.0).unwrap_or(&path).to_string_lossy();
                files.extend(self.files(&inner)?);
            } else {
                files.push(path);
            }
        }
        Ok(files)
    }
}

/// As `gzip -9n` packs it: without a name and a time.
fn compressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut gzip = shell::program("gzip", &["-9n"]);
    let mut gzip = gzip
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start \"gzip\": {e}"))?;
    let input = gzip.stdin.take();
    std::thread::scope(|threads| {
        threads.spawn(|| input.map(|mut input| std::io::Write::write_all(&mut input, bytes)));
        let output = gzip.wait_with_output().map_err(|e| format!("gzip: {e}"))?;
        if output.status.success() { Ok(output.stdout) } else { Err("gzip failed".to_owned()) }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| said(path, &e))
}

/// What is in a folder, by name.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| said(folder, &e))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
