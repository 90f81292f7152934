#!/bin/sh
# Builds prebuilt/*.node from the C files here, after `npm ci` in the workspace. It needs gcc, and
# for arm64 gcc-aarch64-linux-gnu with libc6-dev-arm64-cross (headers alone). Nothing is linked, so
# the same binary loads on glibc and musl.
set -eu
cd "$(dirname "$0")"
headers=$(node -p "require('node-api-headers').include_dir")
sources='addon.c allocator.c gc-hooks.c values.c'
sha256=$(cat values.h $sources | sha256sum | cut -d ' ' -f 1)
mkdir -p prebuilt
build () {
  "$1" -std=c11 -Wall -Wextra -Werror -Os -fPIC -shared -nostdlib -fno-stack-protector -fvisibility=hidden \
    -fno-tree-loop-distribute-patterns -Wl,--build-id=none,-z,noseparate-code,--gc-sections -s -I "$headers" \
    "-DSOURCE_SHA256=\"$sha256\"" $sources -o "prebuilt/$2.node"
}
build "${CC:-gcc}" linux-x64
build "${CC_ARM64:-aarch64-linux-gnu-gcc}" linux-arm64
ls -l prebuilt
