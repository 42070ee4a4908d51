//! Lookup keys, and the entries of the TCAM that match frames by them.

use super::entry::Entry;
use super::tcam::Tcam;
use crate::action::{Action, Target};
use crate::change::Reason;
use crate::frame_type::FrameType;
use crate::key::{Extractor, KeyBytes, Udlk, UdlkId};
use alloc::vec::Vec;
use axon_wire::PortNo;

/// Maximum number of keys of one frame type.
const KEYS_PER_TYPE: usize = 2;

/// Lookup keys and the TCAM.
#[derive(Clone, Debug)]
pub(super) struct Ternary {
    keys: Vec<Option<Key>>,
    /// Keys by frame type.
    of_type: [Vec<UdlkId>; FrameType::ALL.len()],
    slots: Vec<Option<TcamSlot>>,
    entries: u32,
    size: u32,
}

/// A lookup key and its entries.
#[derive(Clone, Debug)]
struct Key {
    udlk: Udlk,
    extractor: Extractor,
    tcam: Tcam,
    users: u32,
}

/// Entry of the TCAM.
#[derive(Clone, Debug)]
pub(super) struct TcamSlot {
    pub(super) udlk: UdlkId,
    pub(super) value: Vec<u8>,
    pub(super) mask: Vec<u8>,
    pub(super) entry: Entry,
}

/// A frame of this type, received on a port with this priority.
#[derive(Clone, Copy)]
pub(super) struct Keyed<'a> {
    pub(super) frame: &'a [u8],
    pub(super) frame_type: FrameType,
    pub(super) ingress: PortNo,
    pub(super) priority: u8,
}

impl Ternary {
    /// Returns an empty TCAM of this size, without keys.
    pub(super) fn new(size: u32) -> Ternary {
        let keys = (0..UdlkId::COUNT).map(|_| None).collect();
        Ternary { keys, of_type: Default::default(), slots: Vec::new(), entries: 0, size }
    }

    /// Returns the number of entries, and its maximum.
    pub(super) fn count(&self) -> (u32, u32) {
        (self.entries, self.size)
    }

    /// Returns the highest index that one of the keys of the frame matches, as found by `search`.
    #[inline(always)]
    pub(super) fn highest(
        &self,
        Keyed { frame, frame_type, ingress, priority }: Keyed<'_>,
        search: impl Fn(&Tcam, &KeyBytes) -> Option<u16>,
    ) -> Option<u16> {
        let keys = self.of_type[frame_type as usize].iter();
        let keys = keys.filter_map(|id| self.keys[usize::from(id.0)].as_ref());
        keys.filter(|key| key.users > 0)
            .filter_map(|key| search(&key.tcam, &key.extractor.extract(frame, ingress, priority)))
            .max()
    }

    /// Returns the entry at this index.
    #[inline]
    pub(super) fn entry_mut(&mut self, index: u16) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(usize::from(index)).and_then(Option::as_mut);
        slot.map(|slot| &mut slot.entry)
    }

    /// Returns the entry at this index, with its key, value and mask.
    pub(super) fn slot(&self, index: u16) -> Option<&TcamSlot> {
        self.slots.get(usize::from(index))?.as_ref()
    }

    /// Returns the actions of all entries that a frame matches, the highest index first. Every
    /// entry is compared, so this is slow.
    pub(super) fn matches(&self, keyed: Keyed<'_>) -> impl Iterator<Item = (u16, &Action)> {
        let keys = self.keys_of(keyed);
        let is_met = move |slot: &TcamSlot| {
            let masked = |key: &[u8]| {
                let bits = key.iter().zip(&slot.mask).map(|(key, mask)| key & mask);
                bits.eq(slot.value.iter().copied())
            };
            keys.iter().any(|(id, key)| *id == slot.udlk && masked(key))
        };
        let highest = self.highest(keyed, Tcam::lookup);
        let indexes = highest.into_iter().flat_map(|highest| (0..=highest).rev());
        indexes.filter_map(move |index| {
            let slot = self.slot(index).filter(|slot| is_met(slot))?;
            Some((index, &slot.entry.action))
        })
    }

    /// Returns the lookup keys of a frame: the bytes in the order of the key's fields.
    pub(super) fn keys_of(&self, keyed: Keyed<'_>) -> Vec<(UdlkId, Vec<u8>)> {
        let Keyed { frame, frame_type, ingress, priority } = keyed;
        let ids = self.of_type[frame_type as usize].iter();
        let keys = ids.filter_map(|&id| Some((id, self.key(id)?)));
        let value = |key: &Key| {
            key.extractor.extract(frame, ingress, priority)[..key.extractor.len()].to_vec()
        };
        keys.map(|(id, key)| (id, value(key))).collect()
    }

    /// Iterates over the lookup keys.
    pub(super) fn udlks(&self) -> impl Iterator<Item = (UdlkId, &Udlk)> {
        let keys = (0..).map(UdlkId).zip(&self.keys);
        keys.filter_map(|(id, key)| Some((id, &key.as_ref()?.udlk)))
    }

    /// Iterates over the entries by index.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u16, &TcamSlot)> {
        let slots = (0..=u16::MAX).zip(&self.slots);
        slots.filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }

    /// Returns the number of entries of a key.
    pub(super) fn users(&self, id: UdlkId) -> u32 {
        self.key(id).map_or(0, |key| key.users)
    }

    /// Checks that each frame type has at most two keys with this one.
    pub(super) fn check_type(&self, udlk: &Udlk) -> Result<(), Reason> {
        let types = FrameType::ALL.into_iter();
        let mut types = types.filter(|&of| udlk.frame_type.is_none_or(|only| only == of));
        match types.find(|&of| self.of_type[of as usize].len() >= KEYS_PER_TYPE) {
            Some(full) => Err(Reason::TooManyKeys(full)),
            None => Ok(()),
        }
    }

    /// Checks that value and mask of an entry are those of its key.
    pub(super) fn check_slot(&self, slot: &TcamSlot) -> Result<(), Reason> {
        let key = self.key(slot.udlk).ok_or(Reason::NoSuchUdlk(slot.udlk))?;
        let expected = key.extractor.len();
        if let Some(wrong) = [&slot.value, &slot.mask].into_iter().find(|of| of.len() != expected) {
            let found = u16::try_from(wrong.len()).unwrap_or(u16::MAX);
            return Err(Reason::ValueBytes { expected: expected as u16, found });
        }
        let outside =
            slot.value.iter().zip(&slot.mask).position(|(value, mask)| value & !mask != 0);
        match outside {
            Some(byte) => Err(Reason::ValueOutsideMask { byte: byte as u16 }),
            None => Ok(()),
        }
    }

    pub(super) fn take_key(&mut self, id: UdlkId) -> Option<Udlk> {
        let key = self.keys.get_mut(usize::from(id.0))?.take()?;
        self.of_type.iter_mut().for_each(|ids| ids.retain(|&other| other != id));
        Some(key.udlk)
    }

    pub(super) fn put_key(&mut self, id: UdlkId, udlk: Udlk) {
        // The key was checked before.
        let Ok(extractor) = Extractor::new(&udlk) else { return };
        for of in FrameType::ALL {
            if udlk.frame_type.is_none_or(|only| only == of) {
                self.of_type[of as usize].push(id);
            }
        }
        let tcam = Tcam::new(extractor.len());
        self.keys[usize::from(id.0)] = Some(Key { udlk, extractor, tcam, users: 0 });
    }

    pub(super) fn take_slot(&mut self, index: u16) -> Option<TcamSlot> {
        let slot = self.slots.get_mut(usize::from(index))?.take()?;
        self.entries -= 1;
        if let Some(Some(key)) = self.keys.get_mut(usize::from(slot.udlk.0)) {
            key.tcam.clear(index, &slot.value, &slot.mask);
            key.users -= 1;
        }
        Some(slot)
    }

    pub(super) fn put_slot(&mut self, index: u16, slot: TcamSlot) {
        let place = usize::from(index);
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        if let Some(Some(key)) = self.keys.get_mut(usize::from(slot.udlk.0)) {
            let decides = slot.entry.action.target != Target::Tables;
            key.tcam.set(index, &slot.value, &slot.mask, decides);
            key.users += 1;
        }
        self.slots[place] = Some(slot);
        self.entries += 1;
    }

    fn key(&self, id: UdlkId) -> Option<&Key> {
        self.keys.get(usize::from(id.0))?.as_ref()
    }
}
