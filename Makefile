# The two commands of a fresh machine are `make demo` and `make test`. Everything here is thin: the work is CMake's,
# the list of packages is scripts/packages.txt.
.PHONY: help deps configured-tests demo docs image package package-test fit test test-long bench asan asan-all fuzz tidy format format-check lint install clean
.DEFAULT_GOAL := help

empty :=
space := $(empty) $(empty)

RELEASE := build/release
JOBS ?= $(shell nproc)

help:
	@echo "make demo       install what is missing, build a release, simulate a real scenario (the main job)"
	@echo "make test       the same for the test suite"
	@echo "make test-long  what takes longer than continuous integration may, an hour of faults at random (RECKON_CHAOS_SECONDS) and"
	@echo "                1,000 kills over layouts and save policies (RECKON_CHAOS_KILLS) among it"
	@echo "make image      an image with reckon-worker for \`reckon run --on kubernetes\`, as a file: build/reckon-worker.tar"
	@echo "make package    a .deb, an archive and an image of this commit: build/packages (docs/releasing.md)"
	@echo "make fit        the catalog's efficiencies, fitted anew to catalogs/evidence (minutes)"
	@echo "make docs       what the pages say that commands print, by running them"
	@echo "make bench      benchmarks; ratios are taken within one run"
	@echo "make asan       tests of what handles memory, files, threads and text, under the address and undefined-behaviour sanitizers;"
	@echo "                asan-all: every unit test"
	@echo "make fuzz       libFuzzer over the readers, HTTP and the wire protocol, 15 s each (SECONDS_EACH=3600 for an hour each)"
	@echo "make tidy       clang-tidy on what changed (BASE=commit; BASE=all for everything)"
	@echo "make format     clang-format everything; format-check only looks"
	@echo "make lint       shell, YAML, spelling and the house rules"
	@echo "make install    into PREFIX (default /usr/local)"

# All packages of scripts/packages.txt; deps-build, deps-test, ... those of one purpose.
deps:
	@scripts/install-deps
deps-%:
	@scripts/install-deps $*

# Without the tests, whose packages a user does not need.
$(RELEASE)/build.ninja: | deps-build
	cmake --preset release -DRECKON_TESTS=OFF
configured-tests: deps-build deps-test
	@grep -qs '^RECKON_TESTS:BOOL=ON' $(RELEASE)/CMakeCache.txt || cmake --preset release -DRECKON_TESTS=ON

demo: deps-build $(RELEASE)/build.ninja
	ninja -C $(RELEASE) -j$(JOBS) reckon
	$(RELEASE)/bin/reckon simulate scenarios/gke-p100-autoscaling.yaml

# LAUNCHER=yes: with reckon and kubectl, for `reckon export kubernetes --as launcher`. Of the CPU alone: CUDA's libraries would be 540 MB of it. See Containerfile for the other.
image: deps-build
	cmake -S . -B build/image -G Ninja -DCMAKE_BUILD_TYPE=Release -DRECKON_CUDA_WANTED=OFF -DRECKON_TESTS=OFF -DRECKON_HTML=OFF
	ninja -C build/image -j$(JOBS) reckon-worker $(if $(LAUNCHER),reckon)
	scripts/image build/reckon-worker.tar --worker build/image/bin/reckon-worker \
	  $(if $(LAUNCHER),--program build/image/bin/reckon --program $$(command -v kubectl || echo kubectl))

package: deps-build deps-package
	scripts/package --jobs $(JOBS)

# In clean systems of Debian 12 and 11: `make test-long` does it.
package-test: package
	scripts/package-test

test: configured-tests
	ninja -C $(RELEASE) -j$(JOBS)
	ctest --test-dir $(RELEASE) -LE long -j$(JOBS) --output-on-failure --output-junit junit.xml

# The long tests, every unit test under the sanitizers, and the static analyzer over all sources.
test-long: deps configured-tests
	ninja -C $(RELEASE) -j$(JOBS)
	ctest --test-dir $(RELEASE) -L long --output-on-failure
	$(MAKE) package-test
	$(MAKE) asan-all
	ANALYZER=1 scripts/tidy all

# Published runs that come with reckon; docs/MODELS.md, "Efficiencies: fit and error".
EVIDENCE := catalogs/evidence/training_runs.csv catalogs/evidence/megatron_lm_steps.csv catalogs/self-check/vtrain_single.csv
fit: deps-build $(RELEASE)/build.ninja
	ninja -C $(RELEASE) -j$(JOBS) reckon
	$(RELEASE)/bin/reckon accuracy $(EVIDENCE) --refit catalogs/efficiencies.csv

bench: configured-tests
	ninja -C $(RELEASE) -j$(JOBS)
	scripts/bench $(RELEASE)

# What handles memory, files, processes, threads and foreign text, in minutes. The rest is arithmetic over values, readers that
# the fuzz programs run under the same sanitizers, or takes longer: asan-all, a part of test-long, has all.
ASAN_TESTS := sim/base sim/measurement executor/comm executor/launch executor/http executor/serve
asan: deps-build deps-test deps-fuzz
	cmake --preset asan
	ninja -C build/asan -j$(JOBS) $(addprefix test_,$(subst /,_,$(ASAN_TESTS)))
	ctest --test-dir build/asan -L unit -R '^($(subst $(space),|,$(ASAN_TESTS))):' -j$(JOBS) --output-on-failure

asan-all: deps-build deps-test deps-fuzz
	cmake --preset asan
	ninja -C build/asan -j$(JOBS)
	ctest --test-dir build/asan -L unit -j$(JOBS) --output-on-failure

# What console blocks of README.md and docs/ print; ctest -L docs holds them to it.
docs: configured-tests
	ninja -C $(RELEASE) -j$(JOBS) reckon reckon-worker
	scripts/docs --write --bin $(RELEASE)/bin

fuzz: deps-build deps-test deps-fuzz
	JOBS=$(JOBS) scripts/fuzz

tidy: deps-build deps-test deps-care
	scripts/tidy $(BASE)

format: deps-care
	scripts/format

format-check: deps-care
	scripts/format --check

lint: deps-care
	scripts/lint

install: deps-build $(RELEASE)/build.ninja
	ninja -C $(RELEASE) -j$(JOBS)
	cmake --install $(RELEASE) --prefix $(or $(PREFIX),/usr/local)

clean:
	rm -rf build
