# Thin: what is built from what.  Logic lives in the programs and in t/.
#
#   make            build everything into build/
#   make run        install what is missing, build, start, print address and token
#   make test       install what is missing, build, run every test
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
CFLAGS_C = $(CSTD) $(WARN) $(OPT) $(if $(SAN),-fPIC $(SAN) -fno-omit-frame-pointer,$(HARDEN)) -Ilib $(CFLAGS)
LDFLAGS_C = $(SAN) $(LDFLAGS)

LIB_LIBS     = -lyajl -lcrypto
HELPER_LIBS  = -lsqlite3 -lcurl -lpthread
RUNTIME_LIBS = -lmicrohttpd -lwslay -lcurl -lutil -lpthread

lib_src     = $(wildcard lib/*.c)
helper_src  = $(filter-out helper/%_main.c,$(wildcard helper/*.c))
gateway_src = $(wildcard standalone/*.c)
runtime_src = $(wildcard standalone/runtime/*.c)
module_src  = $(wildcard ngx_sandbox_module/*.c ngx_sandbox_module/*.h) config

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

programs = $(B)/sandbox-helper $(B)/sandbox-history $(B)/sandbox-gateway \
           $(B)/sandbox-runtime

.PHONY: all programs module console deps run test clean install unit fuzz

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

$(B)/sandbox-gateway: $(call obj,$(gateway_src)) $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(LIB_LIBS)

$(B)/sandbox-runtime: $(call obj,$(runtime_src)) $(B)/libsb.a
	$(CC) $(LDFLAGS_C) -o $@ $^ $(RUNTIME_LIBS) $(LIB_LIBS)

# --- the nginx module -------------------------------------------------------

ifdef NGINX_SRC
NGX_DIR = $(NGINX_SRC)
NGX_CONFIGURE = $(if $(wildcard $(NGINX_SRC)/configure),./configure,./auto/configure)
NGX_CONF = cd $(NGX_DIR) && $(NGX_CONFIGURE) --with-compat --with-threads \
           --with-http_ssl_module --with-http_v2_module $(NGX_FLAGS)
else
NGX_DIR = /usr/share/nginx/src
NGX_CONF = cd $(NGX_DIR) && . ./conf_flags && \
           ./configure --with-cc-opt="-g -O2 -fPIC" --with-ld-opt="-fPIC" \
           "$${NGX_CONF_FLAGS[@]}"
endif

$(B)/nginx/Makefile: config
	@mkdir -p $(B)
	$(NGX_CONF) --add-dynamic-module=$(CURDIR) --builddir=$(CURDIR)/$(B)/nginx \
	    > $(CURDIR)/$(B)/configure.log 2>&1 || { tail -5 $(CURDIR)/$(B)/configure.log; exit 1; }

$(B)/ngx_http_sandbox_module.so: $(B)/nginx/Makefile $(module_src) $(lib_src) $(wildcard lib/*.h)
	$(MAKE) --no-print-directory -f $(CURDIR)/$(B)/nginx/Makefile -C $(NGX_DIR) modules
	cp $(B)/nginx/ngx_http_sandbox_module.so $@

# --- the console (a static page for now) ------------------------------------

$(B)/console/index.html: $(wildcard html/*)
	@mkdir -p $(@D)
	cp -R html/. $(@D)/

# --- unit tests and fuzz targets --------------------------------------------

unit_src = $(wildcard t/unit/test_*.c)
unit_bin = $(patsubst t/unit/%.c,$(B)/t/unit/%,$(unit_src))
fuzz_src = $(wildcard t/fuzz/fuzz_*.c)
fuzz_bin = $(patsubst t/fuzz/%.c,$(B)/t/fuzz/%,$(fuzz_src))

# Unit tests and fuzz targets run under the address and undefined sanitizers:
# the sources they link are compiled a second time for them.
TSAN_FLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_T = $(CSTD) $(WARN) -O1 -g -Ilib -Ihelper -I. $(TSAN_FLAGS)

tobj = $(patsubst %.c,$(B)/tobj/%.o,$(1))

$(B)/tobj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -MMD -MP -c -o $@ $<

$(B)/t/libsb.a: $(call tobj,$(lib_src))
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^

$(B)/t/libhelper.a: $(call tobj,$(helper_src))
	@mkdir -p $(@D); rm -f $@
	ar rcs $@ $^

$(B)/t/unit/test_%: t/unit/test_%.c $(B)/t/libhelper.a $(B)/t/libsb.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -o $@ $^ -lcmocka $(HELPER_LIBS) $(LIB_LIBS)

# A fuzz target defines LLVMFuzzerTestOneInput; t/fuzz/run_seeds.c feeds it
# every file named on its command line.
$(B)/t/fuzz/fuzz_%: t/fuzz/fuzz_%.c t/fuzz/run_seeds.c $(B)/t/libhelper.a $(B)/t/libsb.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_T) -o $@ $^ $(HELPER_LIBS) $(LIB_LIBS)

unit: $(unit_bin)
fuzz: $(fuzz_bin)

clean:
	rm -rf $(B)

-include $(shell find $(B)/obj $(B)/tobj -name '*.d' 2>/dev/null)
