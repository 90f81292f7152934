# memwatch: the exporter, its command line, and the agent to copy into apps.
#   docker build --build-arg NODE_IMAGE=docker.io/library/node:24-bookworm-slim@sha256:DIGEST -t ghcr.io/memwatch/memwatch:VERSION .
# The digest of the base comes in by NODE_IMAGE. It must be Node.js 24 or later: see the flags of the entry point.
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /opt/memwatch
# What is installed follows from these alone: a change in the code installs nothing anew.
COPY package.json package-lock.json .npmrc ./
COPY agent/package.json agent/
COPY allocator/package.json allocator/
COPY cli/package.json cli/
COPY engine/package.json engine/
COPY exporter/package.json exporter/
COPY lab/package.json lab/
COPY mcp/package.json mcp/
COPY otlp/package.json otlp/
RUN npm ci --omit=dev --ignore-scripts
COPY LICENSE ./
COPY agent agent
COPY allocator allocator
COPY cli cli
COPY engine engine
COPY exporter exporter
COPY mcp mcp
COPY otlp otlp
COPY deploy/image/licences.js deploy/image/healthcheck.js deploy/image/start.sh ./
# Source maps, TypeScript, tests and manuals serve only the authors of a package. Each README stays,
# because some packages have their licence in it. Folders esm and esnext have copies of a package's
# code for import; memwatch uses require.
# The apps of memwatch simulate stay out of production: npm ci only needed the name of their package.
RUN npm pkg delete devDependencies scripts overrides \
 && npm pkg set --json 'workspaces=["agent","allocator","cli","engine","exporter","mcp","otlp"]' \
 && rm -r lab node_modules/@memwatch/lab \
 && find . -path '*/node_modules/*' -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' \
      -o -name '*.cts' -o -iname changelog.md -o -iname history.md \) -delete \
 && find . -depth -path '*/node_modules/*' -type d \( -name test -o -name tests -o -name docs \
      -o -name examples -o -name benchmark -o -name benchmarks \
      -o -name esm -o -name esnext \) -exec rm -r {} + \
 && npm sbom --sbom-format cyclonedx > sbom.cdx.json \
 && npm query '*' | node licences.js > licences.txt \
 && rm -rf licences.js .npmrc package-lock.json \
 && mkdir bin && ln -s ../cli/memwatch.js bin/memwatch

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="memwatch" \
      org.opencontainers.image.description="Says which memory problem a Node.js process has, how sure it is, and the exact change that fixes it." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.source="https://github.com/memwatch/memwatch" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/memwatch /opt/memwatch
# A volume that is made here takes these over: the group reaches socket and token, all others only read the agent.
RUN install -d -o 65532 -g 65532 -m 2775 /run/memwatch && install -d -o 65532 -g 65532 -m 0700 /var/lib/memwatch
# MALLOC_ARENA_MAX=1: 3 to 4 MiB less with one target, 7 with ten, CPU alike (three runs side by side in 128 MiB, scraped each second, Node.js 24.21);
# jemalloc brings nothing. What V8 takes, start.sh keeps low. About 50 MiB of each are pages of the file of Node.js itself.
ENV NODE_ENV=production \
    PATH=/opt/memwatch/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    MEMWATCH_LISTEN=0.0.0.0:16369 \
    MEMWATCH_SOCKET=/run/memwatch/exporter.sock \
    MALLOC_ARENA_MAX=1
WORKDIR /opt/memwatch
# With a read-only root the socket still has its place.
VOLUME ["/run/memwatch"]
USER 65532:65532
EXPOSE 16369
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["node", "/opt/memwatch/healthcheck.js"]
ENTRYPOINT ["/opt/memwatch/start.sh"]
CMD ["exporter"]
