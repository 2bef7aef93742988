//! Connections by key. A key is never used again, so that a late event cannot reach a later connection.

use crate::tcp::serve::connection::Connection;

/// A slab: places are used again, and memory only grows with the number of connections at a time.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Place {
    /// Counts the connections that had this place.
    round: u32,
    connection: Option<Connection>,
}

impl Slots {
    /// Puts a connection and gives its key: the round above, the place below.
    pub(super) fn put(&mut self, connection: Connection) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            // Room for every place to be free at once, so that taking allocates nothing.
            self.free.reserve(self.places.len());
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        // The two largest rounds stay unused: such keys mean the listener and the bell.
        place.round = if place.round >= u32::MAX - 2 { 0 } else { place.round + 1 };
        place.connection = Some(connection);
        u64::from(place.round) << 32 | u64::from(index)
    }

    fn place(&self, key: u64) -> Option<usize> {
        let index = key as u32 as usize;
        self.places.get(index).filter(|place| u64::from(place.round) == key >> 32).map(|_| index)
    }

    pub(super) fn get(&self, key: u64) -> Option<&Connection> {
        self.place(key).and_then(|index| self.places[index].connection.as_ref())
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut Connection> {
        self.place(key).and_then(|index| self.places[index].connection.as_mut())
    }

    /// Takes a connection out.
    pub(super) fn take(&mut self, key: u64) -> Option<Connection> {
        let index = self.place(key)?;
        let connection = self.places[index].connection.take();
        if connection.is_some() {
            self.free.push(index as u32);
        }
        connection
    }

    /// Places, used or not.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Key of the connection in a place.
    pub(super) fn key_at(&self, index: usize) -> Option<u64> {
        let place = self.places.get(index).filter(|place| place.connection.is_some())?;
        Some(u64::from(place.round) << 32 | index as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tcp::tests::pair;

    #[test]
    fn keys_of_the_past_reach_nobody() {
        let mut slots = Slots::default();
        let (first, second) = pair();
        let old = slots.put(Connection::new(first, 1));
        assert_eq!(slots.take(old).map(|c| c.born_ns), Some(1));
        let new = slots.put(Connection::new(second, 2));
        assert_ne!(old, new);
        assert!(slots.get(old).is_none() && slots.take(old).is_none());
        assert_eq!((slots.len(), slots.key_at(0), slots.key_at(1)), (1, Some(new), None));
        assert_eq!(slots.get_mut(new).map(|c| c.born_ns), Some(2));
    }
}
