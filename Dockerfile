FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image is new enough, so the packaged Node (an optional dependency) stays out.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY LICENSE CHANGELOG.md ./
COPY config config
COPY bin bin
COPY --from=build /app/dist dist
RUN ln -s /app/bin/crm-mirror.mjs /usr/local/bin/crm-mirror && install -d -o node -g node /data
USER node
# Holds config/mirror.yaml, and the snapshot beside it.
VOLUME /data
WORKDIR /data
ENTRYPOINT ["crm-mirror"]
CMD ["--help"]
