//! Generic netlink: the number behind a family's name, the commands that it takes, and one question to it.

use std::collections::BTreeSet;

use super::socket::{Known, Netlink};
use super::wire::{Attrs, Body};
use crate::HostError;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_OPS: u16 = 6;
const CTRL_ATTR_OP_ID: u16 = 1;

/// Length of `struct genlmsghdr`.
pub(crate) const HEADER: usize = 4;

/// A family and what has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// Name.
    pub name: &'static str,
    /// Kernel version and option.
    pub needs: &'static str,
}

/// `struct genlmsghdr` of a command; both families here are at version 1.
pub(crate) fn header(command: u8) -> [u8; HEADER] {
    [command, 1, 0, 0]
}

impl Netlink {
    /// The number of a family in this kernel.
    ///
    /// **Source** net/netlink/genetlink.c `ctrl_getfamily`. **Errors** `Unsupported` when the kernel has it not.
    pub(crate) fn family(&mut self, family: Family) -> Result<u16, HostError> {
        self.known(family).map(|known| known.number)
    }

    /// Whether this kernel's family takes a command: every family lists what it takes (`CTRL_ATTR_OPS`), so a driver
    /// that refuses a request is distinguished from a kernel that does not know it. Both answer `EOPNOTSUPP`.
    ///
    /// **Errors** when the kernel can't be asked; `false` when it has not even the family.
    pub(crate) fn takes(&mut self, family: Family, command: u8) -> Result<bool, HostError> {
        match self.known(family) {
            Ok(known) => Ok(known.commands.contains(&command)),
            Err(HostError::Unsupported { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// As if the kernel did not have the family.
    #[cfg(test)]
    pub(crate) fn pretend(&mut self, absent: Family) {
        self.families.insert(absent.name, None);
    }

    fn known(&mut self, family: Family) -> Result<&Known, HostError> {
        if !self.families.contains_key(family.name) {
            let known = self.ask_for(family)?;
            self.families.insert(family.name, known);
        }
        self.families.get(family.name).and_then(Option::as_ref).ok_or_else(|| absent(family))
    }

    /// `None` where this kernel has no such family.
    fn ask_for(&mut self, family: Family) -> Result<Option<Known>, HostError> {
        let body = Body::new(&header(CTRL_CMD_GETFAMILY)).text(CTRL_ATTR_FAMILY_NAME, family.name);
        let replies = match self.get(&looking_for(family), GENL_ID_CTRL, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => return Ok(None),
            other => other?,
        };
        replies.first().map_or(Ok(None), |reply| parse_family(reply))
    }

    /// Asks a family for one object.
    pub(crate) fn family_get(
        &mut self,
        op: &str,
        family: Family,
        body: &Body,
    ) -> Result<Vec<u8>, HostError> {
        let number = self.family(family)?;
        let replies = self.get(op, number, body.bytes());
        let replies = replies.map_err(|e| self.blamed(op, family, body, e))?;
        replies.into_iter().next().ok_or_else(|| HostError::kernel(op, libc::ENODATA))
    }

    /// Asks a family for all objects that fit.
    pub(crate) fn family_dump(
        &mut self,
        op: &str,
        family: Family,
        body: &Body,
    ) -> Result<Vec<Vec<u8>>, HostError> {
        let number = self.family(family)?;
        let replies = self.dump(op, number, body.bytes());
        replies.map_err(|e| self.blamed(op, family, body, e))
    }

    /// A refused question, with what is missing: the privilege, the kernel's command, or the driver's answer.
    fn blamed(&mut self, op: &str, family: Family, body: &Body, error: HostError) -> HostError {
        let error = refused(op, error);
        let HostError::Unsupported { what, .. } = error else { return error };
        let command = body.bytes().first().copied().unwrap_or_default();
        let needs = match self.takes(family, command) {
            Ok(true) => "a driver that has it".to_owned(),
            Ok(false) => {
                format!("a newer kernel (its {} family has no command {command})", family.name)
            }
            Err(_) => NEEDS_EITHER.to_owned(),
        };
        HostError::Unsupported { what, needs }
    }
}

fn looking_for(family: Family) -> String {
    format!("find the {} netlink family", family.name)
}

fn absent(family: Family) -> HostError {
    HostError::Unsupported { what: looking_for(family), needs: family.needs.to_owned() }
}

/// Reads the kernel's answer about a family (net/netlink/genetlink.c `ctrl_fill_info`); `None` without a number.
pub(super) fn parse_family(payload: &[u8]) -> Result<Option<Known>, HostError> {
    let attrs = Attrs::after(payload, HEADER)?;
    let Some(number) = attrs.u16(CTRL_ATTR_FAMILY_ID) else { return Ok(None) };
    let mut commands = BTreeSet::new();
    for (_, bytes) in attrs.nest(CTRL_ATTR_OPS)?.iter() {
        // Numbers are 32 bits wide here and 8 bits in a message.
        let id = Attrs::parse(bytes)?.u32(CTRL_ATTR_OP_ID);
        commands.extend(id.and_then(|id| u8::try_from(id).ok()));
    }
    Ok(Some(Known { number, commands }))
}

const NEEDS_EITHER: &str = "a kernel and a driver that have it";

/// A refused question by what the user can do about it: more privilege, or nothing on this device.
pub(crate) fn refused(op: &str, error: HostError) -> HostError {
    match error {
        HostError::Kernel { errno: libc::EPERM | libc::EACCES, .. } => {
            HostError::Denied { what: op.into(), capability: "CAP_NET_ADMIN".into() }
        }
        HostError::Kernel { errno: libc::EOPNOTSUPP, extack: None, .. } => {
            HostError::Unsupported { what: op.into(), needs: NEEDS_EITHER.into() }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use crate::read::netlink::ethtool::RINGS;
    use crate::read::netlink::ethtool::command::{Command, ETHTOOL};

    #[test]
    fn a_family_lists_its_commands() {
        let mut netlink = Netlink::generic().unwrap();
        assert!(netlink.takes(ETHTOOL, Command::RingsGet as u8).unwrap());
        assert!(!netlink.takes(ETHTOOL, 255).unwrap());
        let none = Family { name: "rxpath-none", needs: "nothing that exists" };
        assert!(!netlink.takes(none, 1).unwrap());
    }

    /// Both answer `EOPNOTSUPP`: the words must not.
    #[test]
    fn a_kernel_without_the_command_is_told_from_a_driver_without_the_answer() {
        let mut netlink = Netlink::generic().unwrap();
        let driver = netlink.ethtool(&RINGS, "lo").unwrap_err().to_string();
        assert!(driver.ends_with("needs a driver that has it"), "{driver}");
        let body = Body::new(&header(255));
        let kernel = netlink.family_get("read what is to come", ETHTOOL, &body).unwrap_err();
        let words = kernel.to_string();
        assert!(
            words.contains("a newer kernel (its ethtool family has no command 255)"),
            "{words}"
        );
    }

    takes_any_bytes!(120, bytes => parse_family(&bytes));
}
