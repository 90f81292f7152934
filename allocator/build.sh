#!/bin/sh
# Builds prebuilt/*.node from allocator.c, after `npm ci` in the workspace. Needs gcc, and gcc-aarch64-linux-gnu for arm64.
# Nothing is linked, so the same binary loads on glibc and musl.
set -eu
cd "$(dirname "$0")"
headers=$(node -p "require('node-api-headers').include_dir")
sha256=$(sha256sum allocator.c | cut -d ' ' -f 1)
mkdir -p prebuilt
build () {
  "$1" -std=c11 -Wall -Wextra -Werror -Os -fPIC -shared -nostdlib -fno-stack-protector -fvisibility=hidden \
    -Wl,--build-id=none,-z,noseparate-code,--gc-sections -s -I "$headers" "-DSOURCE_SHA256=\"$sha256\"" allocator.c -o "prebuilt/$2.node"
}
build "${CC:-gcc}" linux-x64
build "${CC_ARM64:-aarch64-linux-gnu-gcc}" linux-arm64
ls -l prebuilt
