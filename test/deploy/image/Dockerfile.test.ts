import { assert, describe, it } from "@effect/vitest"
import manifest from "../../../package.json" with { type: "json" }
import { type Mistake, repository, withMistake } from "../Files.ts"
import * as Dockerfile from "./Dockerfile.ts"

const { path } = Dockerfile

const mistakes: ReadonlyArray<Mistake> = [
  [path, "ARG NODE_VERSION=26.10.0", "ARG NODE_VERSION=26", "the image node:26-trixie-slim is not the Node"],
  [path, /FROM node:.*\nLABEL/, "FROM node:latest\nLABEL", "the image node:latest is not"],
  [path, "COPY layers layers", "COPY layer layers", "COPY names layer, which does not exist"],
  [path, "COPY layers layers", "COPY test test", ".dockerignore keeps test from the builder"],
  [path, "--from=dependencies", "--from=packages", "there is no stage packages"],
  [path, "ENV GATEWAY_BIND_ADDR", "ENV GATEWAY_ADMIN_TOKEN=x GATEWAY_BIND_ADDR", "GATEWAY_ADMIN_TOKEN=x would be part"],
  [path, "USER 65532:65532", "USER node", "the user is node, not the number"],
  [path, "USER 65532:65532", "", "the user is root, not the number"],
  [path, "USER 65532:65532", "USER 65532:65532\nRUN touch /app/new", "a step after USER writes files"],
  [path, 'CMD ["all"]', "CMD all", "CMD is not a list"],
  [path, 'ENTRYPOINT ["svc-runtime"]', "ENTRYPOINT svc-runtime", "ENTRYPOINT is not a list"],
  [path, 'CMD ["node", "/app/healthcheck.mjs"]', "CMD curl localhost", "HEALTHCHECK does not run node itself"],
  [path, "STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL", "STOPSIGNAL is not SIGTERM"],
  [
    path,
    "RUN rm -rf /usr/local/lib/node_modules",
    "RUN apt-get install -y curl && rm -rf /tmp/x",
    "the image installs more"
  ],
  [path, "RUN rm -rf /usr/local/lib/node_modules", "RUN rm -rf /tmp/x", "the image contains npm"],
  [path, 'version="0.1.0"', 'version="0.0.9"', "the label is not of version"],
  [".dockerignore", "!migrations", "", ".dockerignore keeps migrations from the builder"],
  [".dockerignore", "!deploy/healthcheck.mjs", "", ".dockerignore keeps deploy/healthcheck.mjs from the builder"]
]

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
}

describe("the Dockerfile", () => {
  it("keeps its rules", () => {
    assert.deepStrictEqual(Dockerfile.problemsOf(repository), [])
  })

  it.each(mistakes)("%s: a mistake is found: %s → %s", (file, right, wrong, named) => {
    assert.include(Dockerfile.problemsOf(withMistake(file, right, wrong)).join("\n"), named)
  })

  it("puts nothing into the image but the dependencies, the package and the health check", () => {
    const copied = Dockerfile.imageOf(repository).steps.filter(({ keyword }) => keyword === "COPY")
    assert.deepStrictEqual(
      copied.map(({ flags, words }) => [flags["from"], ...words]),
      [
        ["dependencies", "/app/node_modules", "node_modules"],
        ["build", "/build/package", "node_modules/svc-runtime"],
        [undefined, "deploy/healthcheck.mjs", "healthcheck.mjs"]
      ]
    )
  })

  it("installs the peers with the dependencies", () => {
    const { packages }: Lock = JSON.parse(repository("package-lock.json"))
    const needed = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)]
    const left = needed.filter((name) => packages[`node_modules/${name}`]?.dev !== undefined)
    assert.deepStrictEqual(left, [])
  })

  it("sends the builder no secret and no local build", () => {
    const isSent = Dockerfile.isInContext(repository)
    const files = [
      "deploy/.env",
      ".git/config",
      "node_modules/effect/package.json",
      "dist/src/main.js",
      "test/Guides.ts"
    ]
    assert.deepStrictEqual(files.filter(isSent), [])
    assert.isTrue(isSent("src/main.ts"))
  })
})
