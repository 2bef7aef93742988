# make demo and make test do all the set-up themselves; `make help` lists the rest.
CARGO ?= cargo
export CARGO
PROFILE_CI = --profile ci
RXPATH = target/release/rxpath

.PHONY: eco bench-eco bench-hosts hosts-demo hosts-lab static help setup demo test lint bench fuzz miri campaign causes install install-deb package package-test build schema rig stats stats-lab book

help:
	@echo 'make demo     build, run the tutorial in a lab of two network namespaces, write a report'
	@echo 'make hosts-demo  three hosts on this machine, an experiment between two of them over a real ssh (needs root)'
	@echo 'make static   target/release/rxpath-ARCH: a build without shared libraries, which is sent to hosts with an older C library'
	@echo 'make test     the whole test suite (root tests need root; without it they are named as skipped)'
	@echo 'make miri     unit tests of every file with unsafe code under Miri (half an hour; needs a nightly Rust with it)'
	@echo 'make rig      settings on real drivers, in a small machine under QEMU (minutes; installs QEMU as root)'
	@echo 'make lint     formatting, clippy, rustdoc, dependencies, shell scripts, oldest Rust, arm64'
	@echo 'make fuzz     every parser of outside input, MINUTES=10 each (hours; needs a nightly Rust)'
	@echo 'make campaign  kills, packets, planted mis-settings, a day of watch, hostile HTTP clients (hours; goes on where it was stopped; PARTS="kills http")'
	@echo 'make causes   what diagnose says of a hundred causes that others make (half an hour; goes on where it was stopped; ONLY=name)'
	@echo 'make stats    error rates of verdicts, capacity searches and tune auto in simulated runs with noise (minutes; RUNS=10000)'
	@echo 'make stats-lab  what is said of two equal variants in 100 real runs (an hour; goes on where it was stopped)'
	@echo 'make bench    speed against iperf3 and trafgen, interleaved; needs root and a quiet machine'
	@echo 'make install  rxpath, man pages and completions below PREFIX (default /usr/local; DESTDIR for packages)'
	@echo 'make install-deb  the same as a Debian package for this machine, with systemd units (root)'
	@echo 'make package  a .deb and a .rpm of rxpath and of rxpath-agent with their symbols, for every distribution with glibc 2.28 or newer, in target/packages'
	@echo 'make package-test  installs, upgrades, swaps and purges these .deb in fresh Debian systems, and the .rpm by rpm --root (root; SUITES="bookworm")'
	@echo 'make eco      the Ansible collection on four hosts, the chart, the image, the SBOM, the page also over TLS, rules and alerts, a fleet, the workflows (root; minutes; downloads their tools once)'
	@echo 'make bench-eco  what rxpath export costs and whether its numbers are true (root, a quiet machine; two hours; ROWS="cost steal")'
	@echo 'make bench-hosts  whether experiments between hosts reach their goals: clocks, kills, planted losses, 32 hosts, livelock, rates of the lab (root, a quiet machine; two and a half hours; ROWS="clocks kills" ROUNDS=20)'
	@echo 'make hosts-lab LAB=lab.toml  whether the ledger closes on network cards of yours, between the hosts of that inventory (minutes; floods their network)'
	@echo 'make schema   write schemas/ again from the types'
	@echo 'make book     the documents as HTML in target/book (installs mdbook once)'

build:
	@tools/setup.sh build
	@[ -x $(RXPATH) ] || echo 'building rxpath: about 5 minutes on two CPUs the first time'
	$(CARGO) build --release $$(tools/features.sh)

# Of a build that takes half the time: cold code is not optimized.
demo:
	@tools/setup.sh build
	@[ -x target/demo/rxpath ] || echo 'building rxpath for the demo: two to three minutes on two CPUs the first time'
	$(CARGO) build --profile demo $$(tools/features.sh)
	target/demo/rxpath demo

hosts-demo: build
	@tools/setup.sh hosts
	tools/hosts-demo.sh $(RXPATH)

hosts-lab: build
	bench/hosts-lab.sh $(RXPATH) $(LAB)

static:
	@tools/setup.sh static
	tools/static.sh

test:
	@tools/setup.sh test
	tools/test.sh

TESTS =
rig:
	@tools/setup.sh build
	RXPATH_SKIP_LOG=$(CURDIR)/target/skips.log $(CARGO) test $(PROFILE_CI) $$(tools/features.sh) --workspace --test rig -- --nocapture $(TESTS)

lint:
	@tools/setup.sh lint
	tools/lint.sh

bench: build
	@tools/setup.sh bench
	$(CARGO) build --release -p rxpath-bpf --example empty_hooks
	$(CARGO) build --release -p rxpath-stats --example judge
	tools/bench.sh

PARTS = all
campaign:
	@tools/setup.sh test
	$(CARGO) test $(PROFILE_CI) $$(tools/features.sh) --workspace --test campaign -- $(PARTS)

ONLY = all
causes:
	@tools/setup.sh test
	$(CARGO) test $(PROFILE_CI) $$(tools/features.sh) --workspace --test causes -- $(ONLY)

stats:
	RXPATH_STATS_RUNS=$(RUNS) $(CARGO) test --profile ci -p rxpath-stats --test sequential --test load_search -- --nocapture
	RXPATH_AUTO_RUNS=200 $(CARGO) test --profile ci -p rxpath-tune --test it auto -- --nocapture
RUNS = 10000

stats-lab:
	@tools/setup.sh test
	$(CARGO) test $(PROFILE_CI) $$(tools/features.sh) --workspace --test stats_lab -- go

fuzz:
	@tools/setup.sh build
	tools/fuzz.sh

miri:
	@tools/setup.sh build
	tools/miri.sh

schema:
	@tools/setup.sh build
	RXPATH_WRITE_DOCS=1 $(CARGO) test $(PROFILE_CI) $$(tools/features.sh) -p rxpath --bin rxpath cmd::schema

book:
	@tools/setup.sh book
	mdbook build

PREFIX ?= /usr/local
install: build
	$(MAKE) install-files

# What a package ships, of a binary that is built: RXPATH is that binary. `install -s` takes the symbols out.
.PHONY: install-files
install-files:
	install -D -s -m 0755 $(RXPATH) $(DESTDIR)$(PREFIX)/bin/rxpath
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(RXPATH) man --out $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(RXPATH) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/rxpath
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(RXPATH) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_rxpath
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RXPATH) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/rxpath.fish

package:
	tools/release.sh

install-deb:
	@command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo 'install-deb: this is not Debian or Ubuntu (no apt-get, dpkg-deb): use make install' >&2; exit 3; }
	tools/release.sh --native rxpath
	apt-get install -y ./target/packages/rxpath_*.deb

eco: build
	@for goal in ansible kubernetes sbom exposition monitoring tls fleet workflows; do tools/setup.sh $$goal || exit; done
	tools/eco.sh $(RXPATH)

bench-eco: ROWS = cost rate steal scrape memory verdict
bench-eco: build
	$(CARGO) build --release -p rxpath-stats --example judge
	tools/bench-eco.sh $(ROWS)

bench-hosts: ROWS = clocks kills planted scale start livelock ratio size
bench-hosts: build
	@tools/setup.sh bench-hosts
	$(CARGO) build --release -p rxpath-stats --example judge
	$(if $(filter size,$(ROWS)),$(MAKE) static)
	ROUNDS=$(ROUNDS) tools/bench-hosts.sh $(ROWS)

SUITES = bookworm trixie sid
package-test:
	@tools/setup.sh package-test
	tools/package-test.sh $(SUITES)
