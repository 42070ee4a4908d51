//! Configuration of a cache in the network.

use super::range::{self, DAY, number, span};
use crate::error::Problem;
use crate::file;
use axon_agents::InNetworkCacheConfig;
use axon_agents::in_network_cache::Protocol;
use axon_wire::{Bytes, Span};

pub(super) fn cache(index: usize, asked: &file::Cache) -> Result<InNetworkCacheConfig, Problem> {
    let key = |rest: &str| range::key(index, &format!("cache.{rest}"));
    let mut config = match asked.protocol {
        file::CacheProtocol::Id => InNetworkCacheConfig::ID,
        file::CacheProtocol::Memcached => InNetworkCacheConfig::MEMCACHED,
    };
    match (&mut config.protocol, asked.id) {
        (_, None) => {}
        (Protocol::Id { offset, bytes }, Some(id)) => {
            *offset = number(key("id.offset"), id.offset.into(), 0, 1000)? as usize;
            *bytes = number(key("id.bytes"), id.bytes.into(), 1, 64)? as usize;
        }
        (Protocol::Memcached, Some(_)) => {
            return Err(Problem::new(key("id"), "memcached has keys", "protocol: id"));
        }
    }
    if let Some(port) = asked.port {
        config.port = number(key("port"), port.into(), 1, 65_535)? as u16;
    }
    if let Some(bytes) = asked.bytes {
        config.bytes_max = Bytes(number(key("bytes"), bytes.0.0, 1, 64 << 30)?);
    }
    if asked.ttl.is_some() {
        let range = (Span::from_millis(1), DAY);
        config.ttl = Some(span(key("ttl"), asked.ttl, DAY, range)?);
    }
    Ok(config)
}
