FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json tsconfig.types.json ./
COPY src src
RUN npm run build

FROM node:24-bookworm-slim
ENV NODE_ENV=production
# On a large machine Node would keep far more room for what lives briefly, to no use.
ENV NODE_OPTIONS=--max-semi-space-size=16
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image is new enough, so the packaged Node (an optional dependency) stays out.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
# Messages and the help name pages of the docs.
COPY LICENSE CHANGELOG.md README.md SECURITY.md ./
COPY docs docs
COPY config config
COPY bin bin
COPY --from=build /app/dist dist
RUN ln -s /app/bin/crm-mirror.mjs /usr/local/bin/crm-mirror && \
    install -d -o node -g node /data node_modules/.cache/crm-mirror
USER node
# The code that this compiles is kept for all later starts, which can write nothing here. Node keeps
# it for each user, so this one must do it.
RUN cd /tmp && crm-mirror demo > demo.txt && rm -r demo.txt var
# Snapshot and ledger; nothing else is written but what SQLite puts into /tmp for a moment.
VOLUME /data
WORKDIR /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "/app/bin/healthy.mjs"]
ENTRYPOINT ["crm-mirror"]
CMD ["--help"]
