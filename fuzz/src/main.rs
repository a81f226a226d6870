//! A plain mutating runner: no coverage, but it needs nothing beyond cargo, and a run is the same
//! for the same seed and number. Inputs are the checked in seeds, changed over and over.
#![forbid(unsafe_code)]

mod mutate;

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mutate::{Dice, mutate};
use weir_fuzz::{TARGETS, Target};

const USAGE: &str = "\
weir-fuzz [TARGET] [--seconds N] [--runs N] [--seed N] [--replay FILE]
weir-fuzz --list

Without a target all of them, one after the other. --runs with --seed is exactly repeatable.
Exit status: 0 fine, 1 a target panicked, 2 a wrong call.";

/// Inputs kept to go on from, besides the seeds.
const POOL: usize = 256;

struct Call {
    targets: Vec<Target>,
    seconds: Option<u64>,
    runs: Option<u64>,
    seed: u64,
    replay: Option<PathBuf>,
    list: bool,
}

fn main() -> ExitCode {
    let call = match read(std::env::args().skip(1)) {
        Ok(call) => call,
        Err(why) => {
            eprintln!("weir-fuzz: {why}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if call.list {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let mut fine = true;
    for target in &call.targets {
        let outcome = match &call.replay {
            Some(file) => replay(target, file),
            None => run(target, &call),
        };
        match outcome {
            Ok(held) => fine &= held,
            Err(why) => {
                eprintln!("weir-fuzz: {why}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::from(u8::from(!fine))
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Call, String> {
    let mut call =
        Call { targets: vec![], seconds: None, runs: None, seed: 1, replay: None, list: false };
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().and_then(|n| n.parse().ok());
            value.ok_or_else(|| format!("{word} takes a whole number"))
        };
        match word.as_str() {
            "--list" => call.list = true,
            "--seconds" => call.seconds = Some(number()?),
            "--runs" => call.runs = Some(number()?),
            "--seed" => call.seed = number()?,
            "--replay" => {
                call.replay = Some(words.next().ok_or("--replay takes a file")?.into());
            }
            name => match TARGETS.iter().find(|(known, _)| *known == name) {
                Some(target) => call.targets.push(*target),
                None => return Err(format!("there is no target or option \"{name}\"")),
            },
        }
    }
    if call.replay.is_some() && call.targets.len() != 1 {
        return Err("--replay needs one target".to_owned());
    }
    if call.targets.is_empty() {
        call.targets = TARGETS.to_vec();
    }
    Ok(call)
}

/// Runs a target until time or number is up, or it panics.
fn run(target: &Target, call: &Call) -> Result<bool, String> {
    let (name, function) = *target;
    let mut pool = seeds(name)?;
    let kept = pool.len();
    for seed in &pool {
        if let Err(panic) = attempt(function, seed) {
            return crash(name, seed, &*panic);
        }
    }
    let seconds = call.seconds.or(call.runs.is_none().then_some(30));
    let start = clock();
    let mut dice = Dice::new(call.seed);
    let mut runs = 0;
    while call.runs.is_none_or(|most| runs < most) {
        // asking the clock costs more than many an input
        if runs % 256 == 0 && seconds.is_some_and(|s| start.elapsed() >= Duration::from_secs(s)) {
            break;
        }
        let mut input = pool[dice.below(pool.len())].clone();
        let other = dice.below(pool.len());
        mutate(&mut input, &pool[other], &mut dice);
        if let Err(panic) = attempt(function, &input) {
            return crash(name, &input, &*panic);
        }
        runs += 1;
        // without coverage nobody knows which are worth it: some stay, for changes to add up
        if dice.below(8) == 0 {
            if pool.len() < kept + POOL {
                pool.push(input);
            } else {
                let place = kept + dice.below(POOL);
                pool[place] = input;
            }
        }
    }
    let took = start.elapsed().as_secs_f32();
    println!("{name}: {runs} inputs from {kept} seeds in {took:.1} s, seed {}", call.seed);
    Ok(true)
}

fn replay(target: &Target, file: &Path) -> Result<bool, String> {
    let input = fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let held = attempt(target.1, &input).is_ok();
    println!("{}: {}", target.0, if held { "holds" } else { "panics" });
    Ok(held)
}

fn attempt(function: fn(&[u8]), input: &[u8]) -> Result<(), Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| function(input)))
}

/// Keeps the input and says how to run it again.
fn crash(name: &str, input: &[u8], panic: &(dyn Any + Send)) -> Result<bool, String> {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let folder = Path::new("fuzz/artifacts").join(name);
    let file = folder.join(format!("crash-{:016x}", fingerprint(input)));
    let path = root().join(&file);
    fs::create_dir_all(root().join(&folder)).and_then(|()| fs::write(&path, input)).map_err(
        |e| format!("{name} panics ({said}), but {} cannot be written: {e}", path.display()),
    )?;
    println!("{name}: panics on {} bytes: {said}", input.len());
    println!("run it again: cargo x fuzz {name} --replay {}", file.display());
    Ok(false)
}

/// FNV-1a: the same input gets the same name.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The checked in inputs in the order of their names, so that the same seed gives the same run.
fn seeds(name: &str) -> Result<Vec<Vec<u8>>, String> {
    let folder = root().join("fuzz/seeds").join(name);
    let unreadable = |e: std::io::Error| format!("cannot read {}: {e}", folder.display());
    if !folder.exists() {
        println!("{name}: has no fuzz/seeds/{name}, so it starts from nothing");
        return Ok(vec![Vec::new()]);
    }
    let entries = fs::read_dir(&folder).map_err(unreadable)?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    files.sort();
    let mut pool: Vec<Vec<u8>> =
        files.iter().map(fs::read).collect::<Result<_, _>>().map_err(unreadable)?;
    pool.push(Vec::new());
    Ok(pool)
}

/// The directory of the project: where this runs or above, since several clones may share what
/// they build.
fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let root = here.ancestors().find(|path| path.join("fuzz/Cargo.toml").is_file());
    root.unwrap_or(&here).to_owned()
}

#[expect(clippy::disallowed_methods, reason = "--seconds is about the real clock")]
fn clock() -> Instant {
    Instant::now()
}
