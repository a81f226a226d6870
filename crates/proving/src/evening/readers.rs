//! Who connects and says nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use weir_units::Span;

use super::{Evening, end_all};
use crate::clock;
use crate::policy;
use crate::world::World;

const ADDRESS: &str = "127.0.0.1:9477";

const SCRAPE: Span = Span::from_secs(2);
const STOP: Span = Span::from_secs(5);

pub(super) fn silent(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::edited(0), &["--metrics", ADDRESS])?;
    let readers: Result<Vec<TcpStream>, String> = (0..5).map(|_| connected(&world)).collect();
    let readers = readers?;
    let began = clock::now();
    let scraped = scrape(&world);
    let took = clock::now().since(began);
    let held = took < SCRAPE && scraped.as_ref().is_ok_and(|text| text.contains("weir_"));
    let said = scraped.map_or_else(|why| why, |text| format!("{} bytes", text.len()));
    let measured = format!("{said} after {} ms", took.ns() / 1_000_000);
    evening.check("a scrape beside five silent readers", measured, "2 s", held);
    let socket = joined.socket();
    let silent: Vec<_> = (0..16).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    let began = clock::now();
    let stopped = joined.ask(&["stop"]);
    let took = clock::now().since(began);
    let held = stopped.is_ok() && took < STOP;
    let said = stopped.map_or_else(|why| why, |_| "stopped".to_owned());
    let measured = format!("{said} after {} ms", took.ns() / 1_000_000);
    let what = format!("weir stop beside {} silent connections", silent.len());
    evening.check(&what, measured, "5 s", held);
    drop((readers, silent));
    end_all(&world, joined)
}

fn connected(world: &World) -> Result<TcpStream, String> {
    world.box_.within(|| TcpStream::connect(ADDRESS).map_err(|e| format!("{ADDRESS}: {e}")))
}

fn scrape(world: &World) -> Result<String, String> {
    /// Longer than any bar: what is slow is measured, what is dead ends.
    const PATIENCE: Span = Span::from_secs(30);
    let failed = |e: std::io::Error| format!("{ADDRESS}: {e}");
    let mut stream = connected(world)?;
    stream.set_read_timeout(Some(clock::duration(PATIENCE))).map_err(failed)?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
