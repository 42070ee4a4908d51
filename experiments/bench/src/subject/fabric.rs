//! Axon's own subjects: a lab with the same line, on one of the data planes.

use super::shape::Shape;
use anyhow::{Context, Result, ensure};
use axon_demo::process::Stop;
use axon_fabric::LoadError;
use axon_lab::{Lab, StateDir, UpOptions};
use axon_wire::MacAddr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// Time limit for switches to find the controller, in ms.
const UP_LIMIT_MS: u64 = 20_000;
/// Highest rate that can be set in a fabric file.
const RATE: &str = "100Gbps";

/// Lab that is up. Dropping it ends the lab.
pub struct FabricLab {
    lab: Lab,
    /// MAC and IPv4 address of each host.
    hosts: Vec<(MacAddr, Ipv4Addr)>,
}

/// Returns the reason if an error from [`FabricLab::up`] means that this machine or this version
/// lacks the data plane. The file is ours, so nothing else in it can be refused.
pub(crate) fn lacking(error: &anyhow::Error) -> Option<String> {
    error.downcast_ref::<LoadError>().map(|refusal| refusal.problem.what.clone())
}

impl FabricLab {
    /// Starts a lab on this data plane, under a separate name. Ends a lab left by a killed run.
    ///
    /// # Errors
    /// The data plane is refused, or the lab does not come up.
    pub fn up(dataplane: &str, shape: &Shape, folder: &Path, stop: &Stop) -> Result<Self> {
        let name = format!("bench-{dataplane}");
        let path = folder.join("fabric.yaml");
        fs::create_dir_all(folder)?;
        fs::write(&path, text(&name, dataplane, shape))?;
        let mut fabric = axon_fabric::load(&path)?;
        axon_fabric::program::fix_addresses(&mut fabric);
        if StateDir::of(&name)?.exists() {
            axon_lab::down(Some(&name)).context("a run that was killed has left a lab")?;
        }
        let options = UpOptions { timeout_ms: UP_LIMIT_MS, ..UpOptions::default() };
        let (lab, report) = axon_lab::up(&path, &options, |_| {})?;
        let addresses = axon_fabric::addresses::of_hosts(&fabric);
        let hosts = fabric.hosts.iter().zip(addresses);
        let hosts = hosts.filter_map(|(host, address)| Some((host.mac, address?))).collect();
        let this = FabricLab { lab, hosts };
        stop.check()?;
        let waiting = [report.missing, report.unknown].concat();
        ensure!(waiting.is_empty(), "{} did not come up", waiting.join(", "));
        ensure!(this.hosts.len() == shape.hosts.len(), "a host has no address");
        Ok(this)
    }

    /// Returns the lab of this fabric.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Returns the MAC and IPv4 address of a host, given its number from 0.
    pub fn host(&self, host: usize) -> (MacAddr, Ipv4Addr) {
        self.hosts[host]
    }

    /// Returns the process ID of the supervisor, which is the parent of the daemons.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        let supervisor = self.lab.state().supervisor()?;
        u32::try_from(supervisor.pid).ok()
    }
}

impl Drop for FabricLab {
    fn drop(&mut self) {
        if let Err(error) = axon_lab::down(Some(self.lab.name())) {
            axon_linux::log::line(format_args!(
                "axon: cannot end lab {}: {error:#}",
                self.lab.name()
            ));
        }
    }
}

/// Returns the fabric file. XDP cannot enforce rates, so its links get none. `program` is not a
/// data plane but a control program, which learns in the same way as the bridges and Open vSwitch.
fn text(name: &str, dataplane: &str, shape: &Shape) -> String {
    let list = |items: Vec<String>| items.join(", ");
    let switches = list((1..=shape.switches).map(|n| format!("s{n}")).collect());
    let host = |(number, at): (usize, &usize)| format!("h{}: s{}", number + 1, at + 1);
    let hosts = list(shape.hosts.iter().enumerate().map(host).collect());
    let links = list((1..shape.switches).map(|n| format!("[s{n}, s{}]", n + 1)).collect());
    let carrier = match dataplane {
        "program" => "program: bridge".to_owned(),
        _ => format!("dataplane: {dataplane}"),
    };
    let mut text = format!(
        "name: {name}\n{carrier}\ntopology:\n  listed:\n    \
         switches: [{switches}]\n    hosts: {{ {hosts} }}\n    links: [{links}]\n"
    );
    if dataplane != "xdp" {
        text += &format!("links: {{ rate: {RATE} }}\n");
    }
    if let Some(rate) = shape.rate_mbps {
        text += &format!("overrides: [{{ between: [s1, s2], rate: {rate}Mbps }}]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_line_and_what_the_data_plane_takes() {
        for dataplane in ["full", "tc", "xdp", "program"] {
            for shape in [Shape::line(1), Shape::line(5)] {
                let text = text("bench-a", dataplane, &shape);
                let fabric = axon_fabric::parse(Path::new("a.yaml"), &text).unwrap();
                assert_eq!(fabric.switches.len(), shape.switches);
                assert_eq!(fabric.links.len(), shape.switches - 1);
                let placed: Vec<usize> = fabric.hosts.iter().map(|host| host.switch).collect();
                assert_eq!(placed, shape.hosts);
                assert_eq!(text.contains("rate"), dataplane != "xdp");
            }
        }
        let text = text("bench-a", "tc", &Shape::shares(200));
        let fabric = axon_fabric::parse(Path::new("a.yaml"), &text).unwrap();
        assert_eq!(fabric.links[0].wire.rate.bits_per_second(), 200_000_000);
        assert_eq!(fabric.hosts[0].wire.rate.bits_per_second(), 100_000_000_000);
    }
}
