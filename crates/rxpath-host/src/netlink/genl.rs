//! Generic netlink: the number behind a family's name, and one question to it.

use super::socket::{Netlink, Reply};
use super::wire::{Attrs, Body};
use crate::HostError;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

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
pub(super) fn header(command: u8) -> [u8; HEADER] {
    [command, 1, 0, 0]
}

impl Netlink {
    /// The number of a family in this kernel.
    ///
    /// **Source** net/netlink/genetlink.c `ctrl_getfamily`. **Errors** `Unsupported` when the kernel has it not.
    pub(super) fn family(&mut self, family: Family) -> Result<u16, HostError> {
        if let Some(number) = self.families.get(family.name) {
            return Ok(*number);
        }
        let body = Body::new(&header(CTRL_CMD_GETFAMILY)).text(CTRL_ATTR_FAMILY_NAME, family.name);
        let op = format!("find the {} netlink family", family.name);
        let absent = || HostError::Unsupported { what: op.clone(), needs: family.needs.to_owned() };
        let replies = match self.get(&op, GENL_ID_CTRL, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => return Err(absent()),
            other => other?,
        };
        let reply = replies.first().ok_or_else(absent)?;
        let number =
            Attrs::after(&reply.payload, HEADER)?.u16(CTRL_ATTR_FAMILY_ID).ok_or_else(absent)?;
        self.families.insert(family.name, number);
        Ok(number)
    }

    /// Asks a family for one object.
    pub(super) fn family_get(
        &mut self,
        op: &str,
        family: Family,
        body: &Body,
    ) -> Result<Vec<u8>, HostError> {
        let number = self.family(family)?;
        let replies = self.get(op, number, body.bytes()).map_err(|e| refused(op, e))?;
        let reply = replies.into_iter().find(|reply| reply.kind == number);
        reply.map(|reply| reply.payload).ok_or_else(|| HostError::kernel(op, libc::ENODATA))
    }

    /// Asks a family for all objects that fit.
    pub(super) fn family_dump(
        &mut self,
        op: &str,
        family: Family,
        body: &Body,
    ) -> Result<Vec<Reply>, HostError> {
        let number = self.family(family)?;
        let replies = self.dump(op, number, body.bytes()).map_err(|e| refused(op, e))?;
        Ok(replies.into_iter().filter(|reply| reply.kind == number).collect())
    }
}

/// A refused question by what the user can do about it: more privilege, or nothing on this device.
pub(crate) fn refused(op: &str, error: HostError) -> HostError {
    match error {
        HostError::Kernel { errno: libc::EPERM | libc::EACCES, .. } => {
            HostError::Denied { what: op.into(), capability: "CAP_NET_ADMIN".into() }
        }
        HostError::Kernel { errno: libc::EOPNOTSUPP, extack: None, .. } => HostError::Unsupported {
            what: op.into(),
            needs: "a kernel and a driver that have it".into(),
        },
        other => other,
    }
}
