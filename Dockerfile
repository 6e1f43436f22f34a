# The daemon in a container: built with the compiler, run without it.

FROM node:22.22.0-bookworm-slim AS build
WORKDIR /app
# better-sqlite3 compiles itself where no prebuilt binary fits.
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
# The packages alone first, so that a change in the sources does not fetch them again.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
RUN npm rebuild better-sqlite3
COPY . .
RUN npm run build
RUN npm prune --omit=dev --ignore-scripts

FROM node:22.22.0-bookworm-slim
# tini is process 1: it passes signals on and reaps what servers leave behind.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY examples/troupe.jsonc /etc/troupe/troupe.json
# A new volume takes its owner from this directory.
RUN install -d -o node -g node -m 0700 /var/lib/troupe
ENV NODE_ENV=production TROUPE_STATE=/var/lib/troupe TROUPE_CONFIG=/etc/troupe/troupe.json
VOLUME /var/lib/troupe
USER node
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "dist/bundle/troupe.cjs", "status", "--json"]
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["node", "dist/bundle/troupe.cjs", "up"]
