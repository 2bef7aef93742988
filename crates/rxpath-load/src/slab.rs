//! Values by key: an event of the kernel carries the key of a connection.

/// A slab. A key is not used again soon, so that a late event cannot reach a later value in the same slot. Memory only
/// grows with the number of values at a time.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

/// The generation counts the values that the slot had.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Generation and number of a slot. The highest byte is 0: it is the user's own.
pub(crate) type Key = u64;

/// The number of the slot in a key.
#[inline]
pub(crate) fn number(key: Key) -> usize {
    key as u32 as usize
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Takes a value in.
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            // Room for every slot to be free at once, so that removing allocates nothing.
            self.free.reserve(self.slots.len());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// The value of a key; `None` when it is removed.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(number(key))?;
        if u64::from(slot.generation) == key >> 32 { slot.value.as_ref() } else { None }
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(number(key))?;
        if u64::from(slot.generation) == key >> 32 { slot.value.as_mut() } else { None }
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let slot = self.slots.get_mut(number(key))?;
        slot.generation = (slot.generation + 1) & 0x00ff_ffff;
        self.free.push(number(key) as u32);
        slot.value.take()
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Slots, empty ones included.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The value in this slot, with its key.
    pub(crate) fn at(&self, index: usize) -> Option<(Key, &T)> {
        let slot = self.slots.get(index)?;
        slot.value.as_ref().map(|value| (u64::from(slot.generation) << 32 | index as u64, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_key_finds_nobody() {
        let mut slab = Slab::default();
        let old = slab.insert(1);
        assert_eq!(slab.get(old), Some(&1));
        assert_eq!(slab.remove(old), Some(1));
        let new = slab.insert(2);
        assert_ne!(old, new);
        assert_eq!((number(old), slab.count(), slab.slots()), (number(new), 1, 1));
        assert!(slab.get(old).is_none() && slab.remove(old).is_none());
        assert_eq!(slab.get_mut(new), Some(&mut 2));
        assert_eq!((slab.at(0), slab.at(1)), (Some((new, &2)), None));
    }
}
