//! Objects that entries refer to by number: interfaces, groups, tunnels.

use alloc::vec::Vec;

/// Objects by number, with the number of entries that use each.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T> {
    slots: Vec<Slot<T>>,
    size: u32,
    count: u32,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    object: Option<T>,
    users: u32,
}

impl<T> Numbered<T> {
    pub(crate) fn new(size: u32) -> Numbered<T> {
        Numbered { slots: Vec::new(), size, count: 0 }
    }

    #[inline]
    pub(crate) fn get(&self, number: u16) -> Option<&T> {
        self.slots.get(usize::from(number))?.object.as_ref()
    }

    pub(crate) fn take(&mut self, number: u16) -> Option<T> {
        let taken = self.slots.get_mut(usize::from(number))?.object.take();
        self.count -= u32::from(taken.is_some());
        taken
    }

    /// Inserts an object at an unused number.
    pub(crate) fn put(&mut self, number: u16, object: T) {
        self.slot(number).object = Some(object);
        self.count += 1;
    }

    pub(crate) fn users(&self, number: u16) -> u32 {
        self.slots.get(usize::from(number)).map_or(0, |slot| slot.users)
    }

    pub(crate) fn use_by_one(&mut self, number: u16) {
        self.slot(number).users += 1;
    }

    pub(crate) fn unuse_by_one(&mut self, number: u16) {
        self.slot(number).users -= 1;
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Returns the number of objects, and its maximum.
    pub(crate) fn count(&self) -> (u32, u32) {
        (self.count, self.size)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let numbered = (0..=u16::MAX).zip(&self.slots);
        numbered.filter_map(|(number, slot)| Some((number, slot.object.as_ref()?)))
    }

    fn slot(&mut self, number: u16) -> &mut Slot<T> {
        let index = usize::from(number);
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || Slot { object: None, users: 0 });
        }
        &mut self.slots[index]
    }
}
