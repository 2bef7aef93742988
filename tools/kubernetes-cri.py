"""What the kubelet asks the container runtime for (CRI), from a manifest: sandbox.json and container.json for crictl, in DIR.

The manifest's DaemonSet comes from standard input. Fields and defaults are those of the kubelet: pkg/kubelet/kuberuntime and
pkg/securitycontext of Kubernetes 1.30. The address of the node is 127.0.0.1.
Usage: kubernetes-cri.py DIR PARENT [OPTION=VALUE ...]
  PARENT  the control group of the pod
  OPTION  replaces that argument of the container
"""
import json
import pathlib
import sys

import yaml

directory, parent, replaced = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
daemon_set = next(one for one in yaml.safe_load_all(sys.stdin) if one["kind"] == "DaemonSet")
pod = daemon_set["spec"]["template"]["spec"]
container, = pod["containers"]
security = container["securityContext"]
volumes = {volume["name"]: volume["hostPath"]["path"] for volume in pod.get("volumes", [])}
profile = {"RuntimeDefault": 0, "Unconfined": 1}[security["seccompProfile"]["type"]]
# 0: of the pod, 1: of the container, 2: of the node.
namespaces = {"network": 2 if pod.get("hostNetwork") else 0, "pid": 2 if pod.get("hostPID") else 1}


def argument(word):
    option = word.split("=")[0]
    own = [other for other in replaced if other.split("=")[0] == option]
    return own[0] if own else word.replace("$(NODE_IP)", "127.0.0.1")


def mebibytes(text):
    assert text.endswith("Mi"), text
    return int(text[:-2]) << 20


sandbox = {
    "metadata": {"name": "rxpath", "namespace": "rxpath", "uid": "rxpath", "attempt": 0},
    "log_directory": str(directory),
    # The host network has none: the runtime would copy a file of the host, which may be a link into /run.
    "dns_config": {"servers": ["127.0.0.1"]},
    "linux": {"cgroup_parent": f"/{parent}", "security_context": {"namespace_options": namespaces, "seccomp": {"profile_type": profile}}},
}
asked = {
    "metadata": {"name": container["name"]},
    "image": {"image": container["image"]},
    "args": [argument(word) for word in container["args"]],
    "mounts": [
        {"container_path": mount["mountPath"], "host_path": volumes[mount["name"]], "readonly": mount["readOnly"]}
        for mount in container.get("volumeMounts", [])
    ],
    "log_path": "rxpath.log",
    "linux": {
        "resources": {
            "memory_limit_in_bytes": mebibytes(container["resources"]["limits"]["memory"]),
            "cpu_shares": int(container["resources"]["requests"]["cpu"].removesuffix("m")) * 1024 // 1000,
        },
        "security_context": {
            "capabilities": {
                "add_capabilities": security["capabilities"].get("add", []),
                "drop_capabilities": security["capabilities"]["drop"],
            },
            "namespace_options": namespaces,
            "run_as_user": {"value": security["runAsUser"]},
            "readonly_rootfs": security["readOnlyRootFilesystem"],
            "no_new_privs": not security["allowPrivilegeEscalation"],
            "seccomp": {"profile_type": profile},
            "masked_paths": ["/proc/" + name for name in "asound acpi kcore keys latency_stats timer_list timer_stats sched_debug scsi".split()]
            + ["/sys/firmware"],
            "readonly_paths": ["/proc/" + name for name in "bus fs irq sys sysrq-trigger".split()],
        },
    },
}
(directory / "sandbox.json").write_text(json.dumps(sandbox))
(directory / "container.json").write_text(json.dumps(asked))
