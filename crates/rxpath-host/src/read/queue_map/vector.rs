//! Which receive queue an interrupt belongs to, by the name that its driver gave it.
//!
//! **Source** the functions that name them (Linux 6.12):
//!
//! | driver | name | function |
//! |---|---|---|
//! | virtio_net | `virtio2-input.0` | drivers/virtio/virtio_pci_common.c `vp_find_vqs_msix`, drivers/net/virtio_net.c `virtnet_find_vqs` |
//! | igb | `eth0-TxRx-0`, `eth0-rx-0` | drivers/net/ethernet/intel/igb/igb_main.c `igb_request_msix` |
//! | ixgbe | `eth0-TxRx-0` | .../ixgbe/ixgbe_main.c `ixgbe_request_msix_irqs` |
//! | i40e | `i40e-eth0-TxRx-0` | .../i40e/i40e_main.c `i40e_vsi_request_irq_msix` |
//! | ice | `ice-eth0-TxRx-0` | .../ice/ice_main.c `ice_vsi_req_irq_msix` |
//! | e1000e | `eth0-rx-0` | .../e1000e/netdev.c `e1000_request_msix` |
//! | mlx5 | `mlx5_comp0@pci:0000:81:00.0` | drivers/net/ethernet/mellanox/mlx5/core/pci_irq.c `irq_set_name` |
//! | ena | `ens5-Tx-Rx-0` | drivers/net/ethernet/amazon/ena/ena_netdev.c `ena_setup_io_intr` |
//! | gve | `gve-ntfy-blk3@pci:0000:00:04.0`, before 6.4 `eth0-ntfy-block.3` | drivers/net/ethernet/google/gve/gve_main.c `gve_alloc_notify_blocks` |
//! | bnxt | `eth0-TxRx-0`, `eth0-rx-0` | drivers/net/ethernet/broadcom/bnxt/bnxt.c `bnxt_setup_msix` |
//! | vmxnet3 | `eth0-rxtx-0`, `eth0-rx-0` | drivers/net/vmxnet3/vmxnet3_drv.c `vmxnet3_request_irqs` |
//! | bnx2x, qede | `eth0-fp-0` | .../broadcom/bnx2x/bnx2x_cmn.c, .../qlogic/qede/qede_main.c `qede_init_fp` |
//! | be2net | `eth0-q0` | .../emulex/benet/be_main.c `be_msix_register` |
//! | cxgb4 | `eth0-Rx0` | .../chelsio/cxgb4/cxgb4_main.c `name_msix_vecs` |
//! | mana | `mana_q0@pci:7870:00:00.0` | .../microsoft/mana/gdma_main.c; one event queue for the queues of that number of all ports |
//!
//! Of mlx4 (`mlx4-1@0000:03:00.0`), sfc and atlantic (`eth0-0`) the name tells an event queue or a channel and not a queue
//! that receives: those are known from the kernel's own links alone.

/// What stands before the number of a queue that receives, in lower case.
const RECEIVING: [&str; 10] =
    ["-txrx-", "-tx-rx-", "-rxtx-", "-rx-", "-input.", "mlx5_comp", "-fp-", "-q", "-rx", "mana_q"];
/// The same of gve, whose first half of blocks transmits.
const GVE: [&str; 2] = ["gve-ntfy-blk", "-ntfy-block."];

/// The name in the last column: what stands behind the controller, the hardware number and the trigger.
pub fn name(about: &str) -> &str {
    about.split_whitespace().last().unwrap_or_default()
}

/// Whether the interrupt belongs to a notification block of gve.
pub(crate) fn is_gve_block(about: &str) -> bool {
    let name = name(about).to_ascii_lowercase();
    GVE.iter().any(|prefix| number_behind(&name, prefix).is_some())
}

/// The receive queue of an interrupt; `None` for those that transmit, report the link, or name no queue.
///
/// `gve_blocks` is how many notification blocks the device has: of gve the first half transmits and the second
/// receives (gve.h `gve_rx_idx_to_ntfy`).
pub fn receive_queue(about: &str, gve_blocks: usize) -> Option<u32> {
    let name = name(about).to_ascii_lowercase();
    if let Some(block) = GVE.iter().find_map(|prefix| number_behind(&name, prefix)) {
        return block.checked_sub(u32::try_from(gve_blocks / 2).ok()?);
    }
    RECEIVING.iter().find_map(|prefix| number_behind(&name, prefix))
}

/// The number directly behind the last `prefix`, when the name or an `@` follows it.
fn number_behind(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.rsplit_once(prefix)?.1;
    let rest = rest.split_once('@').map_or(rest, |(number, _)| number);
    rest.parse().ok()
}

/// Whether the name holds the device's name as a word: `eth1` is not `eth10`.
pub fn is_named(about: &str, device: &str) -> bool {
    about.split([' ', ',']).any(|word| {
        word.strip_prefix(device).is_some_and(|rest| {
            rest.is_empty() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn queues_are_found_in_every_drivers_names() {
        for (about, queue) in [
            ("PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0", 0),
            ("PCI-MSI 3145731-edge eth0-TxRx-2", 2),
            ("PCI-MSI 3145731-edge eth0-rx-3", 3),
            ("PCI-MSI 3-edge i40e-eth0-TxRx-11", 11),
            ("PCI-MSIX-0000:3b:00.0 12-edge ice-eth0-TxRx-11", 11),
            ("PCI-MSIX 1-edge mlx5_comp15@pci:0000:81:00.0", 15),
            ("PCI-MSI 1-edge ens5-Tx-Rx-7", 7),
            ("PCI-MSIX 1-edge eth0-rxtx-1", 1),
            ("PCI-MSI 1-edge i40e-rx-0-TxRx-4", 4),
            ("PCI-MSI 1-edge eth0-fp-3", 3),
            ("PCI-MSI 1-edge eth0-q12", 12),
            ("PCI-MSI 1-edge eth0-Rx7", 7),
            ("PCI-MSIX 1-edge mana_q5@pci:7870:00:00.0", 5),
        ] {
            assert_eq!(receive_queue(about, 0), Some(queue), "{about}");
        }
        for about in [
            "PCI-MSIX-0000:00:03.0 0-edge virtio2-config",
            "PCI-MSIX-0000:00:03.0 2-edge virtio2-output.0",
            "PCI-MSI 3-edge eth0-tx-0",
            "PCI-MSI 3-edge eth0",
            "PCI-MSIX 0-edge mlx5_async0@pci:0000:81:00.0",
            "PCI-MSI 1-edge i40e-0000:3b:00.0:misc",
            "PCI-MSIX 1-edge eth0-event-3",
            "PCI-MSI 1-edge ena-mgmnt@pci:0000:00:05.0",
            "PCI-MSI 1-edge mlx4-1@0000:03:00.0",
            "PCI-MSI 1-edge eth0-0",
            "PCI-MSIX 1-edge mana_hwc@pci:7870:00:00.0",
        ] {
            assert_eq!(receive_queue(about, 0), None, "{about}");
        }
    }

    #[test]
    fn gves_second_half_receives() {
        let block = |n: u32| format!("PCI-MSIX 1-edge gve-ntfy-blk{n}@pci:0000:00:04.0");
        assert_eq!(receive_queue(&block(3), 8), None);
        assert_eq!(receive_queue(&block(4), 8), Some(0));
        assert_eq!(receive_queue("PCI-MSIX 1-edge eth0-ntfy-block.7", 8), Some(3));
        assert!(is_gve_block(&block(0)) && !is_gve_block("PCI-MSIX 1-edge gve-mgmnt@pci:0000"));
    }

    #[test]
    fn names_are_whole_words() {
        assert!(is_named("PCI-MSIX 1-edge eth1-TxRx-0", "eth1"));
        assert!(is_named("IO-APIC 11-fasteoi uhci, eth1", "eth1"));
        assert!(!is_named("PCI-MSIX 1-edge eth10-TxRx-0", "eth1"));
    }

    proptest! {
        #[test]
        fn no_name_panics(about in ".{0,60}", blocks in 0usize..5000) {
            let _ = receive_queue(&about, blocks);
            let _ = is_named(&about, "eth0");
        }
    }
}
