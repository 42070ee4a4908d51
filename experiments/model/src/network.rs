//! Open queueing networks with one class of jobs, which are packets (003 §2.1).
//!
//! A packet visits station k V times and needs a service time of S at each visit, so its demand is
//! D = V * S. The station with the largest demand is the bottleneck, which saturates at the arrival
//! rate 1 / D. Below that rate, each station is an M/M/1 queue, with random and independent
//! arrivals and exponential service times. A packet then spends D / (1 - rho) at a station with
//! utilisation rho = rate * D, including queueing. By Little's law, the number of packets inside is
//! rate * residence. With constant arrivals and constant service times, there is far less queueing
//! than that. So the model overestimates the cache that a smooth stream needs, and the paper's
//! figure 4 has the same shape.

use serde::Serialize;
use thiserror::Error;

/// Microseconds in a second.
const US_PER_S: f64 = 1e6;

/// A service centre.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Station {
    /// Name of the station, such as `NIC`.
    pub name: String,
    /// Visits of a packet to it, V.
    pub visits: f64,
    /// Service time of one visit, S.
    pub service_us: f64,
}

impl Station {
    /// Creates a station that a packet visits `visits` times, for `service_us` microseconds each.
    pub(crate) fn new(name: &str, visits: f64, service_us: f64) -> Station {
        Station { name: name.to_owned(), visits, service_us }
    }

    /// Returns a packet's total demand over all its visits, D = V * S, in microseconds.
    pub fn demand_us(&self) -> f64 {
        self.visits * self.service_us
    }
}

/// Reason why the model has no result.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// No station has any demand.
    #[error("the network has no station with a demand; expected at least one above zero")]
    NoDemand,
    /// A station has an invalid value.
    #[error(
        "station {name}: {visits} visits of {service_us} us; expected finite numbers from zero"
    )]
    Station {
        /// Name of the station.
        name: String,
        /// Visits to the station.
        visits: f64,
        /// Service time of the station, in microseconds.
        service_us: f64,
    },
    /// A packet of this size is not modelled.
    #[error("a packet of {found} bytes; expected {least} to {most} bytes")]
    PacketSize {
        /// Size that was found, in bytes.
        found: u64,
        /// Smallest modelled size, in bytes.
        least: u64,
        /// Largest modelled size, in bytes.
        most: u64,
    },
    /// The arrival rate is invalid.
    #[error("an arrival rate of {0} packets/s; expected a finite rate above zero")]
    Rate(f64),
    /// The arrival rate saturates the bottleneck, whose queue grows without bound.
    #[error(
        "{rate:.0} packets/s ({rate_mb:.2} MB/s) saturate {bottleneck}: expected less than \
         {saturation:.0} packets/s ({saturation_mb:.2} MB/s)"
    )]
    Saturated {
        /// Arrival rate, in packets per second.
        rate: f64,
        /// Arrival rate in MB/s.
        rate_mb: f64,
        /// Name of the bottleneck.
        bottleneck: String,
        /// Saturation of the bottleneck, in packets per second.
        saturation: f64,
        /// Saturation of the bottleneck, in MB/s.
        saturation_mb: f64,
    },
}

/// Queueing network, together with the size of its packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    stations: Vec<Station>,
    packet_bytes: u64,
    bottleneck: usize,
    delay_us: f64,
}

/// Load of a station at some arrival rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationLoad {
    /// Name of the station, such as `NIC`.
    pub name: String,
    /// Utilisation, 0 to 1.
    pub utilisation: f64,
    /// Residence time of a packet over all visits, queueing included.
    pub residence_us: f64,
    /// Mean number of packets at it, those in service included.
    pub population: f64,
}

/// Load of the network at some arrival rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Arrival rate in packets per second.
    pub arrival_pps: f64,
    /// The stations at this rate, in the order of the network.
    pub stations: Vec<StationLoad>,
    /// Mean time from arrival to departure, latency included.
    pub response_us: f64,
    /// Mean number of packets inside, by Little's law.
    pub population: f64,
    /// Payload held in buffers: packets inside by the size of a packet.
    pub cache_bytes: f64,
}

impl Network {
    /// Creates a network with these stations for packets of `packet_bytes` bytes.
    ///
    /// # Errors
    /// A station has a number that is negative or not finite, or no station has any demand.
    pub(crate) fn new(stations: Vec<Station>, packet_bytes: u64) -> Result<Network, ModelError> {
        let is_possible = |number: f64| number.is_finite() && number >= 0.0;
        for Station { name, visits, service_us } in &stations {
            if !is_possible(*visits) || !is_possible(*service_us) {
                let (name, visits, service_us) = (name.clone(), *visits, *service_us);
                return Err(ModelError::Station { name, visits, service_us });
            }
        }
        // Among equal demands, the last one counts, because a NIC that is as busy as its bus only
        // waits for it.
        let mut bottleneck = 0;
        for (index, station) in stations.iter().enumerate() {
            if station.demand_us() >= stations[bottleneck].demand_us() {
                bottleneck = index;
            }
        }
        if stations.get(bottleneck).is_none_or(|station| station.demand_us() <= 0.0) {
            return Err(ModelError::NoDemand);
        }
        Ok(Network { stations, packet_bytes, bottleneck, delay_us: 0.0 })
    }

    /// Adds a delay for every packet without queueing, in microseconds. It is latency, during which
    /// a packet holds its buffer but occupies no station.
    ///
    /// # Errors
    /// The delay is negative or not finite.
    pub(crate) fn with_delay(self, delay_us: f64) -> Result<Network, ModelError> {
        if !delay_us.is_finite() || delay_us < 0.0 {
            let name = "delay".to_owned();
            return Err(ModelError::Station { name, visits: 1.0, service_us: delay_us });
        }
        Ok(Network { delay_us, ..self })
    }

    /// Returns the delay that every packet has, in microseconds.
    pub fn delay_us(&self) -> f64 {
        self.delay_us
    }

    /// Returns the stations, in the order in which they were given.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// Returns the station with the largest demand. Among equal ones, it is the last.
    pub fn bottleneck(&self) -> &Station {
        &self.stations[self.bottleneck]
    }

    /// Returns the demand on a station in microseconds, or `None` if there is no such station.
    pub fn demand_us(&self, name: &str) -> Option<f64> {
        self.stations.iter().find(|station| station.name == name).map(Station::demand_us)
    }

    /// Returns the arrival rate that saturates the bottleneck, in packets per second.
    pub fn saturation_pps(&self) -> f64 {
        US_PER_S / self.bottleneck().demand_us()
    }

    /// Returns the saturation in MB/s, where 1 MB is 1,000,000 bytes. This is the unit in table 2,
    /// whose 66 MB/s are 4,096 bytes in 62.06 us.
    pub fn saturation_mb_s(&self) -> f64 {
        self.packet_bytes as f64 / self.bottleneck().demand_us()
    }

    /// Converts a rate in MB/s to packets per second.
    pub fn pps_of_mb_s(&self, megabytes: f64) -> f64 {
        megabytes * US_PER_S / self.packet_bytes as f64
    }

    /// Returns the load at an arrival rate in packets per second.
    ///
    /// # Errors
    /// The rate is not above zero, or it is at or above saturation.
    pub fn at(&self, arrival_pps: f64) -> Result<Load, ModelError> {
        if !arrival_pps.is_finite() || arrival_pps <= 0.0 {
            return Err(ModelError::Rate(arrival_pps));
        }
        let saturation = self.saturation_pps();
        if arrival_pps >= saturation {
            return Err(ModelError::Saturated {
                rate: arrival_pps,
                rate_mb: arrival_pps * self.packet_bytes as f64 / US_PER_S,
                bottleneck: self.bottleneck().name.clone(),
                saturation,
                saturation_mb: self.saturation_mb_s(),
            });
        }
        let load = |station: &Station| {
            let demand = station.demand_us();
            let utilisation = arrival_pps * demand / US_PER_S;
            let residence_us = demand / (1.0 - utilisation);
            let population = arrival_pps * residence_us / US_PER_S;
            StationLoad { name: station.name.clone(), utilisation, residence_us, population }
        };
        let stations: Vec<StationLoad> = self.stations.iter().map(load).collect();
        let queued: f64 = stations.iter().map(|station| station.residence_us).sum();
        let response_us = queued + self.delay_us;
        let population = arrival_pps * response_us / US_PER_S;
        let cache_bytes = population * self.packet_bytes as f64;
        Ok(Load { arrival_pps, stations, response_us, population, cache_bytes })
    }

    /// Returns the share of saturation, 0 to 1, at which the packets inside hold `bytes` bytes.
    ///
    /// The number of bytes grows monotonically with the rate, so the share is found by bisection,
    /// to within 1e-9.
    pub fn share_that_fills(&self, bytes: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while high - low > 1e-9 {
            let middle = 0.5 * (low + high);
            let held = self.at(middle * self.saturation_pps()).map(|load| load.cache_bytes);
            if held.is_ok_and(|held| held < bytes) { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(demands: &[(f64, f64)]) -> Result<Network, ModelError> {
        let names = ["a", "b", "c"];
        let station =
            |(name, &(visits, service)): (&&str, &(f64, f64))| Station::new(name, visits, service);
        Network::new(names.iter().zip(demands).map(station).collect(), 1_000)
    }

    #[test]
    fn the_largest_demand_is_the_bottleneck_and_not_the_longest_service() {
        let network = network(&[(1.0, 30.0), (2.0, 20.0), (1.0, 5.0)]).unwrap();
        assert_eq!(network.bottleneck().name, "b");
        assert_eq!(network.saturation_pps(), 25_000.0);
        assert_eq!(network.saturation_mb_s(), 25.0);
        assert_eq!(network.demand_us("c"), Some(5.0));
        assert_eq!(network.demand_us("d"), None);
        let equal = self::network(&[(1.0, 40.0), (2.0, 20.0), (1.0, 5.0)]).unwrap();
        assert_eq!(equal.bottleneck().name, "b");
    }

    #[test]
    fn one_station_at_half_its_rate_is_the_textbook_queue() {
        let load = network(&[(1.0, 10.0)]).unwrap().at(50_000.0).unwrap();
        assert!((load.response_us - 20.0).abs() < 1e-9, "{load:?}");
        assert!((load.population - 1.0).abs() < 1e-9, "{load:?}");
        assert!((load.cache_bytes - 1_000.0).abs() < 1e-6, "{load:?}");
    }

    #[test]
    fn populations_of_stations_sum_to_that_of_the_network() {
        let network = network(&[(1.0, 30.0), (2.0, 20.0), (0.0, 5.0)]).unwrap();
        for share in [0.01, 0.5, 0.99] {
            let load = network.at(share * network.saturation_pps()).unwrap();
            let sum: f64 = load.stations.iter().map(|station| station.population).sum();
            assert!((sum - load.population).abs() < 1e-9 * sum, "{share}: {load:?}");
            assert_eq!(load.stations[2].population, 0.0);
        }
    }

    #[test]
    fn saturation_and_rates_that_are_none_are_refused() {
        let network = network(&[(1.0, 10.0)]).unwrap();
        let error = network.at(100_000.0).unwrap_err();
        assert!(matches!(&error, ModelError::Saturated { bottleneck, .. } if bottleneck == "a"));
        assert!(error.to_string().contains("expected less than 100000 packets/s"), "{error}");
        assert!(network.at(99_999.0).is_ok());
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(network.at(rate), Err(ModelError::Rate(_))), "{rate}");
        }
    }

    #[test]
    fn impossible_stations_are_refused_by_name() {
        assert_eq!(network(&[]), Err(ModelError::NoDemand));
        assert_eq!(network(&[(0.0, 10.0)]), Err(ModelError::NoDemand));
        for pair in [(-1.0, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0)] {
            let error = network(&[(1.0, 1.0), pair]).unwrap_err();
            assert!(matches!(&error, ModelError::Station { name, .. } if name == "b"), "{error}");
        }
    }

    #[test]
    fn a_delay_holds_buffers_and_changes_no_utilisation() {
        let plain = network(&[(1.0, 10.0)]).unwrap();
        let late = plain.clone().with_delay(40.0).unwrap();
        assert_eq!(late.saturation_pps(), plain.saturation_pps());
        let [plain, late] = [plain, late].map(|network| network.at(50_000.0).unwrap());
        assert_eq!(late.stations, plain.stations);
        assert!((late.population - plain.population - 2.0).abs() < 1e-9);
        assert!(network(&[(1.0, 10.0)]).unwrap().with_delay(f64::NAN).is_err());
    }

    #[test]
    fn the_share_that_fills_a_cache_is_where_the_cache_is_full() {
        let network = network(&[(1.0, 30.0), (2.0, 20.0)]).unwrap();
        let share = network.share_that_fills(16_000.0);
        let held = network.at(share * network.saturation_pps()).unwrap().cache_bytes;
        assert!((held - 16_000.0).abs() < 1.0, "{share}: {held}");
    }
}
