import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import { describePortal } from "./PortalBrowser.ts"

const assets = fileURLToPath(new URL("../../dist/portal/assets/", import.meta.url))

/** The size of a file of the portal, compressed with gzip. */
const gzipped = (name: string): number => gzipSync(readFileSync(assets + name), { level: 9 }).length

/** Collects the files that a page loads. The page itself counts, too. */
const loadedBy = (page: Page) => {
  const names = new Set<string>()
  page.on("response", (response) => {
    const name = /\/admin-ui\/assets\/([^/?]+)$/.exec(response.url())?.[1]
    if (name !== undefined) names.add(name)
  })
  return () => [...names].reduce((sum, name) => sum + gzipped(name), 0)
}

const kB = 1_000

/** Where a file would fetch something from another host. Addresses in texts and names of formats do not count. */
const fetched =
  /(?:url\(|@import\s*|\bimport\(|\bfetch\(|new (?:EventSource|WebSocket|Worker|URL)\(|\bsrc=|\bhref=)\s*["'`]?(?:https?:)?\/\/[^"'`)\s]+/g

/** The names of the components' styles, which are the same in scripts and style sheets. */
const stylesIn = (text: string): ReadonlySet<string> => new Set(text.match(/\bm_[0-9a-f]{6,}\b/g))

const contentOf = (end: string): string =>
  readdirSync(assets)
    .filter((name) => name.endsWith(end))
    .map((name) => readFileSync(assets + name, "utf8"))
    .join("\n")

it("The portal has the styles of each component that it uses, and of no other", () => {
  const all = stylesIn(readFileSync(fileURLToPath(import.meta.resolve("@mantine/core/styles.layer.css")), "utf8"))
  const [used, had] = [stylesIn(contentOf(".js")), stylesIn(contentOf(".css"))]
  const missing = [...all].filter((name) => used.has(name) && !had.has(name))
  const unused = [...all].filter((name) => had.has(name) && !used.has(name))
  assert.deepStrictEqual([missing, unused], [[], []])
})

describePortal("What the portal loads", (portal) => {
  it("is at most 90 kB before the sign-in", async () => {
    const { page } = await portal.open("/", { token: null })
    const total = loadedBy(page)
    await page.reload()
    await page.waitForSelector("form input[name=token]")
    assert.isAbove(total(), 0)
    assert.isAtMost(total(), 90 * kB)
  })

  it("is at most 500 kB until the home page is there", async () => {
    const { page } = await portal.open("/settings")
    const total = loadedBy(page)
    await page.goto(`${portal.gateway.control}/admin-ui/`)
    await page.getByRole("heading", { level: 1 }).waitFor()
    let [last, unchanged] = [0, 0]
    await eventuallyTrue(async () => {
      unchanged = total() === last ? unchanged + 1 : 0
      last = total()
      return unchanged > 20
    })
    assert.isAbove(total(), 90 * kB)
    assert.isAtMost(total(), 500 * kB)
  })

  it("is asked for at once by a page of somebody who is signed in, and not by the sign-in", async () => {
    // what scripts ask for later has a whole address
    const asked = (page: Page) =>
      page.evaluate<ReadonlyArray<string>>(`[...document.querySelectorAll("head link[rel=modulepreload]")]
        .map((link) => link.getAttribute("href")).filter((address) => address.startsWith("/"))`)
    const { page } = await portal.open("/settings")
    await page.reload()
    assert.isTrue((await asked(page)).some((address) => address.startsWith("/admin-ui/assets/App-")))
    assert.deepStrictEqual(await asked((await portal.open("/", { token: null })).page), [])
  })

  it("comes from nowhere else", () => {
    const files = readdirSync(assets).filter((name) => /\.(?:js|css|svg)$/.test(name))
    assert.isAbove(files.length, 10)
    const found = files.flatMap((name) =>
      (readFileSync(assets + name, "utf8").match(fetched) ?? []).map((address) => `${name}: ${address}`)
    )
    assert.deepStrictEqual(found, [])
  })

  it("is there in every compressed form that a browser takes", () => {
    const names = new Set(readdirSync(assets))
    for (const name of names) {
      if (!/\.(?:js|css)$/.test(name) || readFileSync(assets + name).length < 1_024) continue
      assert.isTrue(names.has(`${name}.br`), name)
      assert.isTrue(names.has(`${name}.gz`), name)
    }
  })
})
