import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as PortalFolder from "../../../layers/portal/PortalFolder.ts"
import { PortalFiles } from "../../../src/control/portal/PortalFiles.ts"

const page = `<script type="application/json" id="installation">{}</script><script nonce="__nonce__"></script>`

describe("the folder of the built portal", () => {
  const root = mkdtempSync(join(tmpdir(), "svc-test-portal-folder-"))
  afterAll(() => rmSync(root, { recursive: true }))

  const folder = (name: string, files: Readonly<Record<string, string>>): string => {
    mkdirSync(join(root, name, "assets"), { recursive: true })
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, name, file), text)
    return join(root, name)
  }
  const read = (path: string) =>
    Effect.gen(function* () {
      return yield* PortalFiles
    }).pipe(Effect.provide(PortalFolder.layer(path)))

  it.effect("is read with the compressed forms beside each file", () =>
    Effect.gen(function* () {
      const found = yield* read(
        folder("built", {
          "index.html": page,
          "assets/a-1.js": "plain",
          "assets/a-1.js.br": "br",
          "assets/a-1.js.gz": "gz",
          "assets/icon-1.svg": "<svg/>",
          "assets/notes.txt": "not served"
        })
      )
      const { assets, page: text } = Option.getOrThrow(found)
      assert.strictEqual(text, page)
      assert.deepStrictEqual([...assets.keys()].sort(), ["a-1.js", "icon-1.svg"])
      const script = assets.get("a-1.js")
      assert.deepStrictEqual(
        [script?.identity, script?.br, script?.gzip].map((bytes) => new TextDecoder().decode(bytes)),
        ["plain", "br", "gz"]
      )
      assert.strictEqual(script?.contentType, "text/javascript; charset=utf-8")
      assert.isUndefined(assets.get("icon-1.svg")?.br)
    })
  )

  it.effect("is none where it is absent, of another version, or too large for the memory", () =>
    Effect.gen(function* () {
      const large = folder("large", { "index.html": page, "assets/a-1.js": "" })
      truncateSync(join(large, "assets/a-1.js"), 33 * 1024 * 1024)
      for (const path of [join(root, "nothing"), folder("other", { "index.html": "<p>older</p>" }), large])
        assert.isTrue(Option.isNone(yield* read(path)), path)
    })
  )
})
