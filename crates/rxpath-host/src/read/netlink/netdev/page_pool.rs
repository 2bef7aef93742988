//! Page pools: whether receive buffers are recycled or newly allocated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Question, question};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

// NETDEV_A_PAGE_POOL_*
const ID: u16 = 1;
const IFINDEX: u16 = 2;
const NAPI_ID: u16 = 3;
const INFLIGHT: u16 = 4;
const INFLIGHT_MEM: u16 = 5;
// NETDEV_A_PAGE_POOL_STATS_*
const INFO: u16 = 1;
const ALLOC_FAST: u16 = 8;
const ALLOC_SLOW: u16 = 9;
const RECYCLE_CACHED: u16 = 14;
const RECYCLE_CACHE_FULL: u16 = 15;
const RECYCLE_RING: u16 = 16;
const RECYCLE_RING_FULL: u16 = 17;
const RELEASED_REFCNT: u16 = 18;

/// A pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PagePool {
    /// Its number.
    pub id: u64,
    /// The device that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ifindex: Option<u32>,
    /// The NAPI instance that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub napi_id: Option<u64>,
    /// Buffers handed out and not back yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflight_count: Option<u64>,
    /// Memory of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflight_bytes: Option<u64>,
    /// What it did; `None` without `CONFIG_PAGE_POOL_STATS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<PagePoolStats>,
}

/// Counters of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PagePoolStats {
    /// Buffers from the pool's cache.
    pub alloc_fast_total: u64,
    /// Buffers from the page allocator.
    pub alloc_slow_total: u64,
    /// Buffers that went back into the cache.
    pub recycle_cached_total: u64,
    /// Buffers that found the cache full.
    pub recycle_cache_full_total: u64,
    /// Buffers that went back into the ring.
    pub recycle_ring_total: u64,
    /// Buffers that found the ring full: released to the page allocator.
    pub recycle_ring_full_total: u64,
    /// Buffers that somebody else still held: not recycled.
    pub released_refcount_total: u64,
}

impl Netlink {
    /// All pools of this namespace, with their counters where the kernel has them (6.8).
    pub fn page_pools(&mut self) -> Result<Vec<PagePool>, HostError> {
        let replies = self.netdev_dump("page pools", &question(Question::PagePool))?;
        let pools: Result<Vec<_>, _> = replies.iter().map(|reply| parse_page_pool(reply)).collect();
        let mut pools: Vec<PagePool> = pools?.into_iter().flatten().collect();
        let replies = self.netdev_dump("page pool statistics", &question(Question::PagePoolStats));
        let replies = match replies {
            // Without CONFIG_PAGE_POOL_STATS: the pools then have no counters.
            Err(
                HostError::Unsupported { .. } | HostError::Kernel { errno: libc::EOPNOTSUPP, .. },
            ) => Vec::new(),
            other => other?,
        };
        for reply in replies {
            if let Some((id, stats)) = parse_page_pool_stats(&reply)?
                && let Some(pool) = pools.iter_mut().find(|pool| pool.id == id)
            {
                pool.stats = Some(stats);
            }
        }
        Ok(pools)
    }
}

/// Reads one pool (net/core/page_pool_user.c `page_pool_nl_fill`).
pub fn parse_page_pool(payload: &[u8]) -> Result<Option<PagePool>, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(attrs.uint(ID).map(|id| PagePool {
        id,
        ifindex: attrs.u32(IFINDEX),
        napi_id: attrs.uint(NAPI_ID),
        inflight_count: attrs.uint(INFLIGHT),
        inflight_bytes: attrs.uint(INFLIGHT_MEM),
        stats: None,
    }))
}

/// Reads the counters of one pool and its number (`page_pool_nl_stats_fill`).
pub fn parse_page_pool_stats(payload: &[u8]) -> Result<Option<(u64, PagePoolStats)>, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let Some(id) = attrs.nest(INFO)?.uint(ID) else { return Ok(None) };
    // The kernel gives all or none.
    let Some(alloc_fast_total) = attrs.uint(ALLOC_FAST) else { return Ok(None) };
    let of = |kind| attrs.uint(kind).unwrap_or_default();
    let stats = PagePoolStats {
        alloc_fast_total,
        alloc_slow_total: of(ALLOC_SLOW),
        recycle_cached_total: of(RECYCLE_CACHED),
        recycle_cache_full_total: of(RECYCLE_CACHE_FULL),
        recycle_ring_total: of(RECYCLE_RING),
        recycle_ring_full_total: of(RECYCLE_RING_FULL),
        released_refcount_total: of(RELEASED_REFCNT),
    };
    Ok(Some((id, stats)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;

    #[test]
    fn counters_belong_to_the_pool_that_they_name() {
        let info = Body::default().u32(ID, 12).u32(IFINDEX, 2);
        let body = question(Question::PagePoolStats)
            .nest(INFO, &info)
            .u32(ALLOC_FAST, 100)
            .raw(RECYCLE_RING_FULL, &5u64.to_ne_bytes());
        let (id, stats) = parse_page_pool_stats(body.bytes()).unwrap().unwrap();
        assert_eq!((id, stats.alloc_fast_total, stats.recycle_ring_full_total), (12, 100, 5));
        let pool = question(Question::PagePool).u32(ID, 12).u32(INFLIGHT, 64);
        let pool = parse_page_pool(pool.bytes()).unwrap().unwrap();
        assert_eq!((pool.id, pool.inflight_count, pool.napi_id), (12, Some(64), None));
        assert_eq!(parse_page_pool_stats(&[9, 1, 0, 0]).unwrap(), None);
    }
}
