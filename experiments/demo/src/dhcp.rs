//! Two ordinary DHCP clients, each on half of the hosts, which affect only their host.
//!
//! Both clients run a script when they get a lease. The distributions' scripts would rewrite the
//! machine's resolv.conf. Our script configures only the port of the host, and records the lease in
//! a file.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// DHCP client program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// ISC dhclient.
    Dhclient,
    /// BusyBox udhcpc.
    Udhcpc,
}

impl Client {
    /// Returns the client for host number `host`, counted from 1. The two clients alternate.
    pub const fn of_host(host: usize) -> Client {
        if host % 2 == 1 { Client::Dhclient } else { Client::Udhcpc }
    }

    /// Returns the command that keeps `port` configured until it is killed. `folder` must contain
    /// the files from [`write_scripts`].
    pub(crate) fn command(self, folder: &Path, host: &str, port: &str) -> Vec<String> {
        let path = |name: String| folder.join(name).display().to_string();
        let script = path("dhcp-script".into());
        let words: Vec<String> = match self {
            Client::Dhclient => vec![
                "dhclient".into(),
                "-4".into(),
                "-d".into(),
                "-cf".into(),
                path("dhclient.conf".into()),
                "-lf".into(),
                path(format!("{host}.leases")),
                "-pf".into(),
                path(format!("{host}.pid")),
                "-sf".into(),
                script,
                port.into(),
            ],
            Client::Udhcpc => vec![
                "udhcpc".into(),
                "-f".into(),
                "-t".into(),
                "10".into(),
                "-T".into(),
                "1".into(),
                "-i".into(),
                port.into(),
                "-s".into(),
                script,
            ],
        };
        words
    }
}

/// Script that reads `$reason` (dhclient) or `$1` (udhcpc), and uses the variable names of both
/// clients. The lease file is written atomically.
const SCRIPT: &str = r#"#!/bin/sh
set -e
here=$(dirname "$0")
case "${reason:-$1}" in
PREINIT | deconfig)
    ip address flush dev "$interface" scope global
    ip link set "$interface" up
    ;;
BOUND | RENEW | REBIND | REBOOT | bound | renew)
    address=${new_ip_address:-$ip}
    netmask=${new_subnet_mask:-$subnet}
    server=${new_dhcp_server_identifier:-$serverid}
    seconds=${new_dhcp_lease_time:-$lease}
    ip address replace "$address/$netmask" dev "$interface"
    echo "$address $netmask $server $seconds" >"$here/$interface.lease.new"
    mv "$here/$interface.lease.new" "$here/$interface.lease"
    ;;
esac
"#;

/// Configuration of dhclient without a delay before the first message, and with a try each second.
const DHCLIENT_CONF: &str = "\
initial-delay 0;
initial-interval 1;
backoff-cutoff 1;
retry 1;
timeout 20;
request subnet-mask, broadcast-address, routers, domain-name-servers;
";

/// Writes the script, and the configuration of dhclient.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn write_scripts(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("dhcp-script");
    std::fs::write(&script, SCRIPT)
        .and_then(|()| std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)))
        .and_then(|()| std::fs::write(folder.join("dhclient.conf"), DHCLIENT_CONF))
        .with_context(|| format!("cannot write to {}", folder.display()))
}

/// Returns the file in which the script records the lease for a port.
pub(crate) fn lease_file(folder: &Path, port: &str) -> PathBuf {
    folder.join(format!("{port}.lease"))
}

/// Lease of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Length of the subnet's prefix in bits.
    pub prefix_len: u8,
    /// DHCP server.
    pub server: Ipv4Addr,
    /// Duration in seconds.
    pub seconds: u32,
}

impl Lease {
    /// Parses the record that the script writes.
    ///
    /// # Errors
    /// A field is missing or invalid, because both clients pass fields on unchecked.
    pub fn parse(line: &str) -> Result<Lease> {
        let words: Vec<_> = line.split_whitespace().collect();
        let [address, netmask, server, seconds] = words[..] else {
            bail!("the lease lacks address, netmask, server or time: {line:?}");
        };
        let netmask = netmask.parse().context("netmask")?;
        let prefix_len = ipnet::ipv4_mask_to_prefix(netmask)
            .with_context(|| format!("a netmask with holes: {line:?}"))?;
        Ok(Lease {
            address: address.parse().context("address")?,
            prefix_len,
            server: server.parse().context("server")?,
            seconds: seconds.parse().context("lease time")?,
        })
    }

    /// Checks the lease against the fabric file.
    ///
    /// # Errors
    /// The server or the prefix is a different one, the address is outside the pool, or the
    /// duration is zero.
    pub(crate) fn check(&self, dhcp: &axon_fabric::model::Dhcp) -> Result<()> {
        if self.server != dhcp.server || self.prefix_len != dhcp.prefix_len {
            bail!("{self:?} is not from {}/{}", dhcp.server, dhcp.prefix_len);
        }
        let reserved = dhcp.reservations.values().any(|address| *address == self.address);
        if !reserved && !(dhcp.pool_first..=dhcp.pool_last).contains(&self.address) {
            bail!("{} is outside {} to {}", self.address, dhcp.pool_first, dhcp.pool_last);
        }
        if self.seconds == 0 {
            bail!("a lease of no time");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_the_script_writes_it() {
        let lease = Lease::parse("10.0.0.17 255.255.255.0 10.0.0.1 3600\n").unwrap();
        assert_eq!(lease.address, Ipv4Addr::new(10, 0, 0, 17));
        assert_eq!((lease.prefix_len, lease.seconds), (24, 3600));
        for bad in ["", "10.0.0.17 255.255.255.0 10.0.0.1", "10.0.0.17 255.0.255.0 10.0.0.1 1"] {
            assert!(Lease::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_script_is_valid_shell() {
        let folder = std::env::temp_dir().join(format!("axon-papers-{}-dhcp", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        write_scripts(&folder).unwrap();
        let mut check = std::process::Command::new("sh");
        assert!(check.arg("-n").arg(folder.join("dhcp-script")).status().unwrap().success());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn both_clients_are_used_by_three_hosts_each() {
        let count = (1..=6).filter(|host| Client::of_host(*host) == Client::Udhcpc).count();
        assert_eq!(count, 3);
        let command = Client::Udhcpc.command(Path::new("/f"), "h2", "h2-p0").join(" ");
        assert_eq!(command, "udhcpc -f -t 10 -T 1 -i h2-p0 -s /f/dhcp-script");
    }
}
