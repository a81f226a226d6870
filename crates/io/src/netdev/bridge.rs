//! Bridges of the kernel, as far as weir uses one: both its ports may stay in a bridge that passes
//! nothing between them (both are isolated) while weir does, so that the bridge takes over when
//! weir's process is gone and somebody clears the isolation.

use std::io;

use super::netlink::{Netlink, Request};
use super::{IFNAME, INFO_KIND, LINKINFO, MASTER, index_of};

/// Attributes of a port (`IFLA_BRPORT_*`).
pub(super) const ISOLATED: u16 = 33;
/// Where the attributes of a port stand.
const PROTOCOL_INFO: u16 = 12;
/// The family whose requests are about ports (`AF_BRIDGE`).
const BRIDGE: u8 = 7;

/// Makes a bridge of that name.
pub fn create_bridge(name: &str) -> io::Result<()> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let request = Request::link(libc::RTM_NEWLINK, flags, 0)
        .with_name(IFNAME, name)
        .nested(LINKINFO, |info| info.with(INFO_KIND, b"bridge"));
    Netlink::open()?.ask(request).map(drop)
}

/// Removes the bridge of that name; its ports stay, by themselves.
pub fn remove_bridge(name: &str) -> io::Result<()> {
    Netlink::open()?.ask(Request::link(libc::RTM_DELLINK, 0, index_of(name)?)).map(drop)
}

/// Makes an interface a port of a bridge.
pub fn add_to_bridge(port: &str, bridge: &str) -> io::Result<()> {
    set_master(port, index_of(bridge)?)
}

/// Takes an interface out of the bridge that it is in.
pub fn remove_from_bridge(port: &str) -> io::Result<()> {
    set_master(port, 0)
}

/// Whether the bridge passes anything between this port and others that are isolated.
pub fn set_isolated(port: &str, isolated: bool) -> io::Result<()> {
    set_port(port, ISOLATED, &[u8::from(isolated)])
}

/// The same of the interface with that number, whatever it is called now.
pub fn set_isolated_at(index: u32, isolated: bool) -> io::Result<()> {
    set_port_at(index, ISOLATED, &[u8::from(isolated)])
}

fn set_master(port: &str, master: u32) -> io::Result<()> {
    let request =
        Request::link(libc::RTM_SETLINK, 0, index_of(port)?).with(MASTER, &master.to_ne_bytes());
    Netlink::open()?.ask(request).map(drop)
}

fn set_port(port: &str, attribute: u16, value: &[u8]) -> io::Result<()> {
    set_port_at(index_of(port)?, attribute, value)
}

fn set_port_at(index: u32, attribute: u16, value: &[u8]) -> io::Result<()> {
    const NESTED: u16 = 0x8000;
    let request = Request::of_family(BRIDGE, libc::RTM_SETLINK, 0, index)
        .nested(PROTOCOL_INFO | NESTED, |info| info.with(attribute, value));
    Netlink::open()?.ask(request).map(drop)
}
