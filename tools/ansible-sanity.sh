#!/bin/sh
# `ansible-test sanity` and ansible-lint over the collection; what they install comes from PyPI only.
# Usage: tools/ansible-sanity.sh [WORDS of ansible-test sanity...]
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/target/ansible-tools/bin
[ -x "$bin/ansible-test" ] || { echo 'ansible-sanity: ansible-test is missing: tools/setup.sh ansible' >&2; exit 3; }
# ansible-test keeps virtual environments and its cache below HOME. It wants the collection in a folder of its name.
home=$PWD/target/ansible-home
collection=$home/ansible_collections/rxpath/rxpath
rm -rf "$home/ansible_collections"
mkdir -p "$home/.ansible/test/cache" "$home/ansible_collections/rxpath"
cp -r ansible "$collection"
git -C "$collection" init -q
git -C "$collection" add -A

# It fetches a script that installs pip from a site of its own. The same by the wheel of PyPI.
pip=24.2
wheel=$home/pip-$pip-py3-none-any.whl
[ -e "$wheel" ] || "$bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$home" "pip==$pip"
cat >"$home/.ansible/test/cache/get_pip_$(echo $pip | tr . _).py" <<END
import runpy
import sys

sys.path.insert(0, "$wheel")
sys.argv[1:] = ["install"] + [one for one in sys.argv[1:] if one not in ("--no-setuptools", "--no-wheel")]
runpy.run_module("pip", run_name="__main__")
END
log=$home/sanity.log
cd "$collection"
python=$("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
HOME=$home PATH=$bin:$PATH ansible-test sanity --python "$python" --color no "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "ansible-sanity: $(grep -c '^Running sanity test' "$log") tests of ansible-test"
# The playbooks of the tests name the collection itself.
HOME=$home ANSIBLE_COLLECTIONS_PATH=$home PATH=$bin:$PATH ansible-lint --offline --nocolor -q . >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo 'ansible-sanity: nothing to say for ansible-lint'
