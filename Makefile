# Thin: what is built from what.  Logic lives in the programs and in t/.
#
#   make            build everything into build/
#   make run        install what is missing, build, start, print address and token
#   make test       install what is missing, build, run every test
#   make soak       the long proof: an hour of load, sanitizers, fuzzing
#   make bench      measure it beside plain nginx: a table, and build/bench.json
#   make dev        the console with hot reload, on top of a running gateway
#   make install    put it all under PREFIX (/usr/local) below DESTDIR
#   make package    the same as a tar file below build/, for machines like this one
#   make NGINX_SRC=DIR   build the module against an nginx source tree instead

SHELL = /bin/bash
.DEFAULT_GOAL := all

B        = build
CC      ?= cc
CSTD     = -std=c11 -D_GNU_SOURCE
WARN     = -Wall -Wextra -Wshadow -Wconversion -Werror
OPT     ?= -O2 -g
HARDEN   = -fPIC -fstack-protector-strong -D_FORTIFY_SOURCE=2
SAN     ?=
CFLAGS_C = $(CSTD) $(WARN) $(OPT) $(if $(SAN),-fPIC $(SAN) -fno-omit-frame-pointer,$(HARDEN)) -iquote lib $(CFLAGS)
LDFLAGS_C = $(SAN) $(LDFLAGS)

LIB_LIBS     = -lcrypto
POLICY_LIBS  = -lpcre2-8
INSPECT_LIBS = -larchive
HELPER_LIBS  = -lsqlite3 -lcurl -lz -lpthread
RUNTIME_LIBS = -lmicrohttpd -lwslay -lcurl -lutil -lpthread

lib_src     = $(wildcard lib/*.c)
helper_src  = $(filter-out helper/%_main.c,$(wildcard helper/*.c))
gateway_src = $(wildcard standalone/*.c)
runtime_src = $(wildcard standalone/runtime/*.c)
module_src  = $(wildcard ngx_sandbox_module/*.c ngx_sandbox_module/*.h) config

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

programs = $(B)/sandbox-helper $(B)/sandbox-history $(B)/sandbox-inspect \
           $(B)/sandbox-gateway $(B)/sandbox-runtime

.PHONY: all programs module console dev deps run test bench clean install package unit fuzz FORCE

all: programs module console
programs: $(programs)
module: $(B)/ngx_http_sandbox_module.so
console: $(B)/console/index.html

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -MMD -MP -c -o $@ $<

$(B)/libsb.a: $(call obj,$(lib_src))
	@rm -f $@
	ar rcs $@ $^

$(B)/libhelper.a: $(call obj,$(helper_src))
	@rm -f $@
	ar rcs $@ $^

$(B)/sandbox-helper: $(B)/obj/helper/helper_main.o $(B)/libhelper.a $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(HELPER_LIBS) $(LIB_LIBS)

$(B)/sandbox-history: $(B)/obj/helper/history_main.o $(B)/libhelper.a $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(HELPER_LIBS) $(LIB_LIBS)

$(B)/sandbox-inspect: $(B)/obj/helper/inspect_main.o $(B)/libhelper.a $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(INSPECT_LIBS) $(LIB_LIBS)

$(B)/sandbox-gateway: $(call obj,$(gateway_src)) $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ -lssl $(POLICY_LIBS) $(LIB_LIBS)

# The configurations of conf/ that sandbox-gateway fills in, as C strings.
$(B)/obj/standalone/nginx_conf.o: $(B)/gen/standalone_conf.h $(B)/gen/tls_conf.h
$(B)/obj/standalone/nginx_conf.o: private CFLAGS_C += -I$(B)/gen

$(B)/obj/standalone/policy.o: $(B)/gen/default_policy.h
$(B)/obj/standalone/policy.o: private CFLAGS_C += -I$(B)/gen

$(B)/gen/%_policy.h: conf/policy.%
	@mkdir -p $(@D)
	sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $< > $@

$(B)/gen/%_conf.h: conf/%.conf
	@mkdir -p $(@D)
	sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $< > $@

$(B)/sandbox-runtime: $(call obj,$(runtime_src)) $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(RUNTIME_LIBS) $(LIB_LIBS)

# --- the nginx module -------------------------------------------------------

ifdef NGINX_SRC
NGX_DIR = $(NGINX_SRC)
NGX_CONFIGURE = $(if $(wildcard $(NGINX_SRC)/configure),./configure,./auto/configure)
NGX_CONF = $(NGX_CONFIGURE) --with-compat --with-threads \
           --with-http_ssl_module --with-http_v2_module $(NGX_FLAGS)
else
NGX_DIR = /usr/share/nginx/src
# optimized as a whole: what a request runs through is spread over many files
NGX_OPT = $(if $(SAN),-O2 $(SAN),-O3 -flto=auto -fno-semantic-interposition)
NGX_CONF = . ./conf_flags && \
           ./configure --with-cc-opt="-g -fPIC $(NGX_OPT)" --with-ld-opt="-fPIC $(NGX_OPT)" \
           "$${NGX_CONF_FLAGS[@]}"
endif

# nginx's configure cannot take a path that holds a space: it then sees the
# checkout through a link with a plain name, remembered in build/nginx.root.
NGX_ROOT = root=$$(cat $(B)/nginx.root 2> /dev/null) || root=; \
           [ "$$root" -ef . ] || { root="$$PWD"; case "$$root" in *[[:space:]]*) \
               root=$$(mktemp -d)/src; ln -s "$$PWD" "$$root";; esac; \
               rm -rf $(B)/nginx; mkdir -p $(B); echo "$$root" > $(B)/nginx.root; }

# configure lists the sources: it runs again when there are others.
$(B)/nginx.sources: FORCE
	@mkdir -p $(B); echo "$(sort $(module_src) $(lib_src)) $(NGX_DIR)" | cmp -s - $@ \
	    || echo "$(sort $(module_src) $(lib_src)) $(NGX_DIR)" > $@

# Two makes at once in one tree would spoil each other's configure.
NGX_LOCK = mkdir -p $(B); exec 9> $(B)/nginx.lock; flock 9

$(B)/nginx/Makefile: config $(B)/nginx.sources
	@export ASAN_OPTIONS=detect_leaks=0; $(NGX_LOCK); $(NGX_ROOT); log="$$PWD/$(B)/configure.log"; cd "$(NGX_DIR)" && { $(NGX_CONF) \
	    --add-dynamic-module="$$root" --builddir="$$root/$(B)/nginx"; } \
	    > "$$log" 2>&1 || { tail -5 "$$log"; rm -f "$$root/$(B)/nginx/Makefile"; exit 1; }

$(B)/ngx_http_sandbox_module.so: $(B)/nginx/Makefile $(module_src) $(lib_src) $(wildcard lib/*.h)
	@[ "$$(cat $(B)/nginx.root 2> /dev/null)" -ef . ] || { rm -f $(B)/nginx/Makefile; \
	    $(MAKE) --no-print-directory -s $(B)/nginx/Makefile; }
	@$(NGX_LOCK); $(MAKE) --no-print-directory -s -f "$$(cat $(B)/nginx.root)/$(B)/nginx/Makefile" \
	    -C "$(NGX_DIR)" modules
	@# not in place: a running nginx has it mapped
	cp $(B)/nginx/ngx_http_sandbox_module.so $@.new && mv -f $@.new $@

FORCE:

# --- the console -------------------------------------------------------------

# node and npm as .ci/deps found or installed them, else those on PATH
with_node = cd html && PATH="$$OLDPWD/$(B)/node/bin:$$PATH"

html_src = $(shell find html -name node_modules -prune -o -type f -print)

# npm ci only when the lock file is another one
html/node_modules/.installed: html/package-lock.json html/.npmrc
	@$(with_node) npm ci --ignore-scripts --loglevel=error > /dev/null
	@touch $@

$(B)/console/index.html: $(html_src) html/node_modules/.installed
	@$(with_node) npm run --silent build -- --logLevel warn
	@touch $@

# Hot reload, with the API of a gateway that runs: make dev GATEWAY=http://…
GATEWAY ?= http://127.0.0.1:8080

dev: html/node_modules/.installed
	@$(with_node) SANDBOX_GATEWAY="$(GATEWAY)" npm run --silent dev

# --- unit tests and fuzz targets --------------------------------------------

unit_src = $(wildcard t/unit/test_*.c)
unit_bin = $(patsubst t/unit/%.c,$(B)/t/unit/%,$(unit_src))
fuzz_src = $(wildcard t/fuzz/fuzz_*.c)
fuzz_bin = $(patsubst t/fuzz/%.c,$(B)/t/fuzz/%,$(fuzz_src))

# Unit tests and fuzz targets run under the address and undefined sanitizers:
# the sources they link are compiled a second time for them.
TSAN_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_T = $(CSTD) $(WARN) -O1 -g -iquote lib -iquote helper -iquote . $(TSAN_FLAGS)

tobj = $(patsubst %.c,$(B)/tobj/%.o,$(1))

$(B)/tobj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -MMD -MP -c -o $@ $<

# edges of the code are counted for the fuzz targets, but not in the counter
$(B)/tobj/%.o: private CFLAGS_T += -fsanitize-coverage=trace-pc
$(B)/tobj/t/fuzz/cov.o: t/fuzz/cov.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) -O2 -MMD -MP -c -o $@ $<

$(B)/t/libsb.a: $(call tobj,$(lib_src)) $(B)/tobj/t/fuzz/cov.o
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^

$(B)/t/libhelper.a: $(call tobj,$(helper_src))
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^

# of which the allocations fail, one after the other
$(B)/t/unit/test_alloc: private TSAN_FLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

$(B)/t/unit/test_%: t/unit/test_%.c $(wildcard t/unit/*.h) $(B)/t/libhelper.a $(B)/t/libsb.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -o $@ $(filter-out %.h,$^) -lcmocka $(HELPER_LIBS) $(INSPECT_LIBS) $(POLICY_LIBS) $(LIB_LIBS)

# A fuzz target defines LLVMFuzzerTestOneInput; t/fuzz/run_seeds.c feeds it
# every file named on its command line, and for a while what it makes of them.
$(B)/t/fuzz/fuzz_%: t/fuzz/fuzz_%.c t/fuzz/run_seeds.c $(B)/t/libhelper.a $(B)/t/libsb.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -o $@ $(filter-out %.a,$^) $(filter %.a,$^) $(HELPER_LIBS) $(INSPECT_LIBS) $(POLICY_LIBS) $(LIB_LIBS) $(FUZZ_LIBS)

# the local runtime's own readers, each in a file of its own
runtime_part = standalone/runtime/$(patsubst glob,execd_glob,$(patsubst json,gojson,$(1)))
runtime_fuzz = $(patsubst t/fuzz/fuzz_runtime_%.c,%,$(wildcard t/fuzz/fuzz_runtime_*.c))
$(foreach n,$(runtime_fuzz),$(eval $(B)/t/fuzz/fuzz_runtime_$n: $(B)/tobj/$(call runtime_part,$n).o))
$(foreach n,$(runtime_fuzz),$(eval $(B)/libfuzzer/fuzz_runtime_$n: $(B)/fobj/$(call runtime_part,$n).o))

# our JSON reader is held against one that nobody here wrote
%/fuzz_json_yajl: FUZZ_LIBS = -lyajl

# What tests load into a process to make it fail.
shims = $(patsubst t/fault/%.c,$(B)/t/%.so,$(wildcard t/fault/shim_*.c))

$(B)/t/shim_%.so: t/fault/shim_%.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(OPT) -fPIC -fno-builtin -shared -o $@ $<

unit: $(unit_bin) $(shims)
fuzz: $(fuzz_bin)

# The same targets for clang's libFuzzer, which is what make soak runs.
CLANG   ?= clang
CFLAGS_F = $(CSTD) -w -O1 -g -iquote lib -iquote helper -iquote . -fno-omit-frame-pointer

$(B)/fobj/%.o: %.c
	@mkdir -p $(@D)
	$(CLANG) $(CFLAGS_F) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<

$(B)/libfuzzer/fuzz_%: $(B)/fobj/t/fuzz/fuzz_%.o $(patsubst %.c,$(B)/fobj/%.o,$(lib_src) $(helper_src))
	@mkdir -p $(@D)
	$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(HELPER_LIBS) $(INSPECT_LIBS) $(POLICY_LIBS) $(LIB_LIBS) $(FUZZ_LIBS)

.SECONDARY: $(patsubst %.c,$(B)/fobj/%.o,$(fuzz_src))
.PHONY: libfuzzer
libfuzzer: $(patsubst t/fuzz/%.c,$(B)/libfuzzer/%,$(fuzz_src))

# --- everything once more with the sanitizers: SANDBOX_BUILD=build/san --------
#
# nginx itself stays the packaged one: $(S)/bin/nginx preloads libasan into it
# (leaks are not looked for there, and nginx's pools hide small overflows).

S = $(B)/san
san_programs = $(patsubst $(B)/%,$(S)/%,$(programs))

.PHONY: san san-module soak
san: $(san_programs) $(S)/bin/nginx $(S)/libsb.a $(S)/console/index.html san-module

$(san_programs): | $(S)/bin/nginx
$(S)/sandbox-helper: $(call tobj,helper/helper_main.c) $(B)/t/libhelper.a $(B)/t/libsb.a
	$(CC) $(TSAN_FLAGS) -o $@ $^ $(HELPER_LIBS) $(LIB_LIBS)
$(S)/sandbox-history: $(call tobj,helper/history_main.c) $(B)/t/libhelper.a $(B)/t/libsb.a
	$(CC) $(TSAN_FLAGS) -o $@ $^ $(HELPER_LIBS) $(LIB_LIBS)
$(S)/sandbox-inspect: $(call tobj,helper/inspect_main.c) $(B)/t/libhelper.a $(B)/t/libsb.a
	$(CC) $(TSAN_FLAGS) -o $@ $^ $(INSPECT_LIBS) $(LIB_LIBS)
$(S)/sandbox-gateway: $(call tobj,$(gateway_src)) $(B)/t/libsb.a
	$(CC) $(TSAN_FLAGS) -o $@ $^ -lssl $(POLICY_LIBS) $(LIB_LIBS)
$(S)/sandbox-runtime: $(call tobj,$(runtime_src)) $(B)/t/libsb.a
	$(CC) $(TSAN_FLAGS) -o $@ $^ $(RUNTIME_LIBS) $(LIB_LIBS)

$(B)/tobj/standalone/nginx_conf.o: $(B)/gen/standalone_conf.h $(B)/gen/tls_conf.h
$(B)/tobj/standalone/nginx_conf.o: private CFLAGS_T += -I$(B)/gen
$(B)/tobj/standalone/policy.o: $(B)/gen/default_policy.h
$(B)/tobj/standalone/policy.o: private CFLAGS_T += -I$(B)/gen

$(S)/bin/nginx: t/lib/nginx-with-asan
	@mkdir -p $(@D)
	cp $< $@

# t/routes.t links a program of its own with it
$(S)/libsb.a: $(B)/libsb.a
	@mkdir -p $(@D)
	cp $< $@

$(S)/console/index.html: $(B)/console/index.html
	@mkdir -p $(S); rm -rf $(S)/console; cp -R $(B)/console $(S)/

san-module:
	+@$(MAKE) --no-print-directory -s B=$(S) SAN="$(TSAN_FLAGS)" module

# --- what takes an hour -------------------------------------------------------

# SOAK='load fuzz' for some parts; SOAK_SECONDS, FUZZ_SECONDS, T_SCALE.
SOAK ?=

soak:
	@.ci/deps soak
	$(build) all unit fuzz san libfuzzer
	@t/soak/run $(SOAK)

# --- the two commands -------------------------------------------------------

# With other options: make run ARGS='--upstream http://127.0.0.1:8090'
$(B)/bench/load: bench/load.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -o $@ $<

$(B)/bench/streams: bench/streams.c bench/clock.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -o $@ $<

$(B)/bench/frames: bench/frames.c $(B)/libsb.a bench/clock.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_C) -o $@ $(filter-out %.h,$^) $(LIB_LIBS)

DATA ?= data
ARGS ?=
JOBS ?= $(shell nproc)
build = +@$(MAKE) --no-print-directory -s $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

# BENCH='--case proxy', or one of the others by its name: BENCH='history --output 40m'
bench_of = $(filter history console,$(firstword $(BENCH)))

bench:
	@.ci/deps bench
	$(build) all $(B)/bench/load $(B)/bench/frames $(B)/bench/streams
	@bench/$(or $(bench_of),run) $(if $(bench_of),$(wordlist 2,99,$(BENCH)),$(BENCH))

deps:
	@.ci/deps run

run: deps
	@[ -e $(B)/sandbox-gateway ] || echo "Building, which takes up to a minute" >&2
	$(build) all
	@exec $(B)/sandbox-gateway --data "$(DATA)" $(ARGS)

# One prove, one summary; TESTS='t/routes.t' for some of them.  One more at once
# than there are processors, as most of their time they wait; those that take
# longest first; what shares a machine is given more time to wait.
TEST_JOBS ?= $(shell echo $$(($(JOBS) + 1)))
TESTS ?= $(sort $(wildcard t/console/*.t)) $(sort $(wildcard t/interop/*.t)) \
         $(sort $(wildcard t/*.t))

test:
	@.ci/deps test
	$(build) all unit fuzz san
	@SANDBOX_TEST_PATIENCE=$${SANDBOX_TEST_PATIENCE:-3} \
	    prove -It/lib -j$(TEST_JOBS) $(PROVE_FLAGS) $(TESTS)

# --- installation -----------------------------------------------------------

PREFIX  ?= /usr/local
DESTDIR ?=
inst     = $(DESTDIR)$(PREFIX)

install: all
	install -d "$(inst)/bin" "$(inst)/lib/sandbox-gateway" \
	    "$(inst)/share/sandbox-gateway/console" \
	    "$(inst)/share/doc/sandbox-gateway/docs"
	install -m 755 $(B)/sandbox-gateway $(B)/sandbox-history "$(inst)/bin"
	install -m 755 $(B)/sandbox-helper $(B)/sandbox-inspect $(B)/sandbox-runtime \
	    "$(inst)/lib/sandbox-gateway"
	install -m 644 $(B)/ngx_http_sandbox_module.so "$(inst)/lib/sandbox-gateway"
	rm -rf "$(inst)/share/sandbox-gateway/console/assets"
	cp -R $(B)/console/. "$(inst)/share/sandbox-gateway/console"
	install -m 644 LICENSE NOTICE README.md conf/tls.conf conf/policy.default conf/policy.seed "$(inst)/share/doc/sandbox-gateway"
	install -m 644 docs/*.md "$(inst)/share/doc/sandbox-gateway/docs"
	for f in drop-in.conf sandbox-gateway.service; do \
	    sed 's|/usr/local/|$(PREFIX)/|' conf/$$f \
	        | install -m 644 /dev/stdin "$(inst)/share/doc/sandbox-gateway/$$f"; done

# Named by what it fits: programs are of this system and processor, the module is
# of this nginx.  Files only: unpacked at / it changes no directory that is there.
OUT         ?= $(B)
version      = $(shell sed -n 's/^\#define SB_VERSION  *"\(.*\)"/\1/p' lib/sb.h)
nginx_of     = $(shell sed -n 's/^\#define NGINX_VERSION  *"\(.*\)"/\1/p' "$(NGX_DIR)/src/core/nginx.h")
package_name = sandbox-gateway-$(version)-$(shell uname -sm | tr 'A-Z ' 'a-z-')-nginx-$(nginx_of)

package: all
	@tree=$$(mktemp -d) && trap 'rm -rf "$$tree"' EXIT \
	    && $(MAKE) --no-print-directory -s -o all install DESTDIR="$$tree" \
	    && (cd "$$tree" && find * ! -type d -print0 | LC_ALL=C sort -z) \
	        | tar -C "$$tree" --null -T - --owner=0 --group=0 --numeric-owner \
	            -czf "$(OUT)/$(package_name).tar.gz" \
	    && echo "$(OUT)/$(package_name).tar.gz"

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj $(B)/tobj $(B)/fobj -name '*.d' 2>/dev/null)
