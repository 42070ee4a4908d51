//! Network device that serves as a port for a while: its requirements, its move to the switch, and
//! its return.
//!
//! The kernel keeps the MAC address, MTU and offloads of a moved device, and drops its addresses,
//! routes and queueing discipline. Settings that can be restored are therefore read before the
//! move: permanent addresses, and whether the device is up. While the device is a port, it has the
//! MTU and offloads of the port.

use super::super::plan::{Offloads, UplinkPlan};
use anyhow::{Context, Result, bail, ensure};
use axon_linux::iproute::{output, run};
use axon_linux::namespace::Namespace;
use axon_linux::sys::{self, Offload};
use axon_wire::MacAddr;
use serde::{Deserialize, Serialize};

/// Kinds of device that consist of other devices or are created for them.
const COMPOSED: [&str; 5] = ["bridge", "bond", "team", "vrf", "openvswitch"];

/// Original state of a device, as far as it can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Found {
    mac: String,
    mtu: usize,
    is_up: bool,
    addresses: Vec<Address>,
    /// Offloads that are disabled at the port, and whether they were on.
    offloads: Vec<(Offload, bool)>,
}

/// Device that is a port now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Taken {
    uplink: UplinkPlan,
    found: Found,
}

/// Link, as `ip -json -details link` shows it.
#[derive(Deserialize)]
struct Link {
    ifname: String,
    #[serde(default)]
    flags: Vec<String>,
    mtu: usize,
    #[serde(default)]
    link_type: String,
    #[serde(default)]
    address: String,
    /// Bridge or other device of which the link is part.
    master: Option<String>,
    /// Lower device of the link.
    link: Option<String>,
    /// Namespace of the lower device, if not this one.
    link_netnsid: Option<i64>,
    #[serde(default)]
    min_mtu: usize,
    /// Maximum MTU; 0 for no limit.
    #[serde(default)]
    max_mtu: usize,
    #[serde(default)]
    linkinfo: LinkInfo,
}

#[derive(Default, Deserialize)]
struct LinkInfo {
    #[serde(default)]
    info_kind: String,
}

#[derive(Deserialize)]
struct Addressed {
    ifname: Option<String>,
    #[serde(default)]
    addr_info: Vec<Address>,
}

/// Address, as `ip -json address` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Address {
    #[serde(default)]
    local: String,
    prefixlen: u8,
    /// Peer address of a point-to-point link.
    address: Option<String>,
    broadcast: Option<String>,
    #[serde(default)]
    scope: String,
    /// True if the address has a lifetime: its manager will set it again.
    #[serde(default)]
    dynamic: bool,
    #[serde(default)]
    noprefixroute: bool,
}

#[derive(Deserialize)]
struct Route {
    dst: String,
    dev: Option<String>,
    #[serde(default)]
    nexthops: Vec<NextHop>,
}

#[derive(Deserialize)]
struct NextHop {
    dev: Option<String>,
}

impl Route {
    fn is_by(&self, device: &str) -> bool {
        let hops = self.nexthops.iter().map(|hop| &hop.dev);
        hops.chain([&self.dev]).any(|dev| dev.as_deref() == Some(device))
    }
}

fn parsed<T: serde::de::DeserializeOwned>(arguments: &[&str]) -> Result<Vec<T>> {
    let bytes = output("ip", arguments)?;
    // `ip` prints nothing for an empty list of routes.
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&bytes)
        .with_context(|| format!("cannot understand what `ip {}` prints", arguments.join(" ")))
}

/// Inspects the device of an uplink in the network namespace of the calling thread.
///
/// # Errors
/// The device is missing, or cannot or must not be a port. The error names the reason and the
/// remedy. Nothing has changed.
pub(in super::super) fn look(uplink: &UplinkPlan) -> Result<Found> {
    let UplinkPlan { name, device, .. } = uplink;
    looked_at(uplink).with_context(|| format!("uplink {name} cannot have device {device}"))
}

fn looked_at(uplink: &UplinkPlan) -> Result<Found> {
    let device = uplink.device.as_str();
    let links: Vec<Link> = parsed(&["-json", "-details", "link", "show"])?;
    let link = links.iter().find(|link| link.ifname == device).with_context(|| {
        let there: Vec<&str> = links.iter().map(|link| link.ifname.as_str()).collect();
        format!("this network namespace has none of that name; it has {}", there.join(" "))
    })?;
    check(link, &links, uplink.mtu)?;
    for family in ["-4", "-6"] {
        let routes: Vec<Route> = parsed(&["-json", family, "route", "show", "table", "all"])?;
        let default = |route: &Route| route.dst == "default" && route.is_by(device);
        ensure!(
            !routes.iter().any(default),
            "the default route of this machine goes over it, and would be lost; expected a device \
             that the machine can do without"
        );
    }
    let addressed: Vec<Addressed> = parsed(&["-json", "address", "show", "dev", device])?;
    let here = addressed.into_iter().filter(|one| one.ifname.as_deref() == Some(device));
    let addresses = here.flat_map(|one| one.addr_info).filter(Address::can_be_set_again);
    let off: &[Offload] = match uplink.offloads {
        Offloads::Kept => &[],
        Offloads::Finished => &[Offload::Gro, Offload::Lro],
        Offloads::Bare => &[Offload::Gro, Offload::Lro, Offload::RxVlan],
    };
    // An offload that a device does not have need not be disabled.
    let was = |&offload: &Offload| Some((offload, sys::offload(device, offload).ok()?));
    Ok(Found {
        mac: link.address.clone(),
        mtu: link.mtu,
        is_up: link.flags.iter().any(|flag| flag == "UP"),
        addresses: addresses.collect(),
        offloads: off.iter().filter_map(was).collect(),
    })
}

/// Refuses a device that cannot be a port with this MTU, in bytes. `links` are all existing links.
fn check(link: &Link, links: &[Link], mtu: usize) -> Result<()> {
    let (device, kind) = (link.ifname.as_str(), link.linkinfo.info_kind.as_str());
    ensure!(!link.flags.iter().any(|flag| flag == "LOOPBACK"), "it is the loopback device");
    ensure!(link.link_type == "ether", "it is not an Ethernet device ({})", link.link_type);
    ensure!(!link.flags.iter().any(|flag| flag == "NOARP"), "it has no wire ({kind})");
    if let Some(master) = &link.master {
        bail!("it is part of {master}; take it out first (`ip link set {device} nomaster`)");
    }
    ensure!(!COMPOSED.contains(&kind), "it is a {kind}, which is made of other devices");
    let is_above = |other: &&Link| {
        let based = other.link.as_deref() == Some(device) && other.link_netnsid.is_none();
        // Each end of a veth pair has the other as its lower device.
        based && other.linkinfo.info_kind != "veth"
    };
    if let Some(above) = links.iter().find(is_above) {
        bail!("{} is based on it, and would lose it; delete that first", above.ifname);
    }
    let (least, most) = (link.min_mtu, link.max_mtu);
    ensure!(
        least <= mtu && (most == 0 || mtu <= most),
        "its MTU can be {least} to {most} bytes, and hosts of the fabric have {mtu} (`mtu`)"
    );
    Ok(())
}

impl Address {
    fn can_be_set_again(&self) -> bool {
        self.scope == "global" && !self.dynamic && self.address.is_none()
    }

    fn set(&self, device: &str) -> Result<()> {
        let address = format!("{}/{}", self.local, self.prefixlen);
        let mut words = vec!["address", "replace", &address, "dev", device];
        if let Some(broadcast) = &self.broadcast {
            words.extend(["broadcast", broadcast]);
        }
        if self.noprefixroute {
            words.push("noprefixroute");
        }
        run("ip", &words, "")
    }
}

impl Taken {
    /// Moves the device of an uplink out of `home`, where the calling thread is, and makes it the
    /// port in `switch`. The device is down there.
    ///
    /// # Errors
    /// As [`look`], or the kernel reports an error. The device is then back in `home`.
    pub(super) fn take(uplink: &UplinkPlan, switch: &Namespace, home: &Namespace) -> Result<Taken> {
        let taken = Taken { found: look(uplink)?, uplink: uplink.clone() };
        let UplinkPlan { name, device, port, .. } = uplink;
        let words = ["link", "set", "dev", device, "netns", &switch.path(), "name", port];
        let set_up = || {
            let mtu = uplink.mtu.to_string();
            run("ip", &["link", "set", "dev", port, "mtu", &mtu], "")?;
            for (offload, _) in &taken.found.offloads {
                sys::set_offload(port, *offload, false)
                    .with_context(|| format!("cannot switch {offload:?} off"))?;
            }
            Ok(())
        };
        let made = run("ip", &words, "").and_then(|()| switch.inside(home, set_up));
        let Err(error) = made else { return Ok(taken) };
        // The device has the name of the port or still its own name. If it is a cable, it may have
        // either name.
        let put_back = [port, device].into_iter().find_map(|there| {
            let moved = taken.move_home(there, true, switch, home).transpose()?;
            Some(moved.and_then(|now| taken.restore(&now)))
        });
        let error = match put_back {
            Some(Err(lacks)) => error.context(format!("{lacks:#}")),
            _ => error,
        };
        Err(error.context(format!("uplink {name} cannot have device {device}")))
    }

    /// Moves the device back to `home` if it is still in `switch`, and restores its settings.
    /// Leaves the calling thread in `home`.
    ///
    /// # Errors
    /// The device is still in `switch`. Or it is back without some of its settings, which the error
    /// names.
    pub(super) fn give_back(&self, switch: &Namespace, home: &Namespace) -> Result<()> {
        match self.move_home(&self.uplink.port, false, switch, home)? {
            Some(now) => self.restore(&now),
            None => Ok(()),
        }
    }

    /// Moves the device called `name` from `switch` back to `home`, where it is down. Returns its
    /// name there, or `None` if there is no such device or its MAC address is not the required one.
    /// The move comes before any step that may fail, because a namespace that ends destroys its
    /// devices.
    fn move_home(
        &self,
        name: &str,
        by_mac: bool,
        switch: &Namespace,
        home: &Namespace,
    ) -> Result<Option<String>> {
        let Taken { uplink: UplinkPlan { device, .. }, found } = self;
        let moved = switch.inside(home, || {
            let Ok(mac) = sys::device_mac(name) else { return Ok(false) };
            if by_mac && MacAddr(mac).to_string() != found.mac {
                return Ok(false);
            }
            let _ = sys::set_device_up(name, false);
            // If the original name is taken, the kernel moves the device under its current name.
            run("ip", &["link", "set", "dev", name, "netns", &home.path(), "name", device], "")?;
            Ok(true)
        });
        match moved {
            Ok(moved) => Ok(moved.then(|| device.clone())),
            Err(_) if sys::device_mac(name).is_ok() => Ok(Some(name.to_owned())),
            Err(error) => Err(error.context(format!("cannot give {device} back"))),
        }
    }

    /// Restores the settings of the device, whose name is now `now`, as far as possible.
    fn restore(&self, now: &str) -> Result<()> {
        let Taken { uplink: UplinkPlan { device, .. }, found } = self;
        let mut lacks = Vec::new();
        let mut set = |what: &str, done: Result<()>| {
            if let Err(error) = done {
                lacks.push(format!("{what} ({error:#})"));
            }
        };
        let mtu = found.mtu.to_string();
        set("with another MTU", run("ip", &["link", "set", "dev", now, "mtu", &mtu], ""));
        if sys::device_mac(now).is_ok_and(|mac| MacAddr(mac).to_string() != found.mac) {
            set(
                "with another MAC",
                run("ip", &["link", "set", "dev", now, "address", &found.mac], ""),
            );
        }
        for (offload, was_on) in &found.offloads {
            // An offload that was off may be one that cannot be changed.
            let _ = sys::set_offload(now, *offload, *was_on);
        }
        if found.is_up {
            set("down", sys::set_device_up(now, true).map_err(Into::into));
        }
        for address in &found.addresses {
            set(&format!("without address {}", address.local), address.set(now));
        }
        if now != device {
            lacks.insert(0, format!("as {now}"));
        }
        ensure!(lacks.is_empty(), "{device} is back, but {}", lacks.join(", "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<Link> {
        serde_json::from_str(text).unwrap()
    }

    const ETHERNET: &str = r#""flags":["BROADCAST","UP"],"mtu":1500,"link_type":"ether",
        "address":"02:00:00:00:00:09","min_mtu":68,"max_mtu":1600"#;

    #[test]
    fn a_device_is_refused_for_its_mtu_and_for_what_is_made_of_it_here() {
        let text = format!(
            r#"[{{"ifname":"eth1",{ETHERNET}}},
            {{"ifname":"eth2",{ETHERNET},"link":"eth1","link_netnsid":0}},
            {{"ifname":"v0",{ETHERNET},"link":"v1","linkinfo":{{"info_kind":"veth"}}}},
            {{"ifname":"v1",{ETHERNET},"link":"v0","linkinfo":{{"info_kind":"veth"}}}},
            {{"ifname":"eth3",{ETHERNET}}},
            {{"ifname":"eth3.7",{ETHERNET},"link":"eth3","linkinfo":{{"info_kind":"vlan"}}}},
            {{"ifname":"ppp0","flags":["UP"],"mtu":1500,"link_type":"ppp"}}]"#
        );
        let links = links(&text);
        let of = |index: usize, mtu| check(&links[index], &links, mtu).map_err(|e| e.to_string());
        assert_eq!((of(0, 1500), of(1, 1600), of(2, 1500)), (Ok(()), Ok(()), Ok(())));
        let refused = |index, mtu| of(index, mtu).unwrap_err();
        assert_eq!(
            refused(0, 9000),
            "its MTU can be 68 to 1600 bytes, and hosts of the fabric have 9000 (`mtu`)"
        );
        assert!(refused(4, 1500).starts_with("eth3.7 is based on it"));
        assert_eq!(refused(6, 1500), "it is not an Ethernet device (ppp)");
    }

    #[test]
    fn addresses_with_a_lifetime_and_of_one_link_are_not_set_again() {
        let text = r#"[{"local":"192.0.2.7","prefixlen":24,"scope":"global"},
            {"local":"192.0.2.8","prefixlen":24,"scope":"global","dynamic":true},
            {"local":"192.0.2.9","prefixlen":32,"scope":"global","address":"192.0.2.1"},
            {"local":"fe80::1","prefixlen":64,"scope":"link"}]"#;
        let addresses: Vec<Address> = serde_json::from_str(text).unwrap();
        let kept = addresses.iter().filter(|address| address.can_be_set_again());
        assert_eq!(kept.map(|one| one.local.as_str()).collect::<Vec<_>>(), ["192.0.2.7"]);
    }
}
