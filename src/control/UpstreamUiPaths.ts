import { RegExp as Pattern } from "effect"

/** Where operators find the upstream's UI on the control listener. */
export const prefix = "/admin-ui/upstream-ui"

/**
 * What the UI's pages ask for at the root of their origin (reference §11.5): the control listener answers there as
 * well, and the same names under the prefix lead to the upstream's root.
 */
const roots = [
  ...["upstream-asset-prefix", "upstream", "v2", "v3", "get_image", "get", "public", "config", "health", "key"],
  ...["in_product_nudges", "model", "model_group", "models", "organization", "policies", "project", "prompts", "sso"],
  ...["tag", "team", "user"]
]

/** Of the root paths, what scripts and pages join with others, so that not every mention of them is a whole link. */
const joined = ["/upstream-asset-prefix", "/v2", "/v3", "/get", "/get_image", "/public"]

/** The ways between the control listener and the upstream's UI. */
export interface UpstreamUiPaths {
  /** Paths of the control listener that lead to the upstream, for its router: each `/*` with the path above it. */
  readonly patterns: ReadonlyArray<`/${string}`>
  /** The upstream's path and query for a target of the control listener; `undefined` where there is none. */
  readonly upstreamTarget: (target: string) => string | undefined
  /**
   * Where on the control listener a link of the upstream leads: into the UI, or, written with the upstream's own
   * origin, to one of the root names. Any other link stays as it is.
   */
  readonly shown: (link: string, origin: string) => string
  /**
   * A page or a script, with the root paths that it quotes moved below the prefix. Byte for character: give it latin1.
   */
  readonly shownText: (text: string, origin: string) => string
  /** JSON, with the links among its strings as `shown` has them; everything else of it stays to the letter. */
  readonly shownJson: (text: string, origin: string) => string
}

/** `named`: root paths by the names that they have at a deployment's own upstream (`UPSTREAM_UI_PATHS`). */
export const make = (named: ReadonlyArray<string>): UpstreamUiPaths => {
  const own = named.filter((path) => !roots.includes(firstName(path)))
  const patterns = new Set<`/${string}`>([
    `${prefix}/*`,
    "/v1/agents",
    ...roots.map((name) => `/${name}/*` as const),
    // a pattern for what lies below a path covers the path itself, and a router takes each only once
    ...own.filter((path) => !own.includes(`${path}/*`)).map((path) => `/${path.slice(1)}` as const)
  ])
  /** Under the prefix, whatever is asked for below `/v1` is the upstream's. */
  const rootNames: ReadonlySet<string> = new Set([...roots, "v1", ...own.map(firstName)])
  const moved = [...new Set([...joined, ...named.map((path) => path.replace(/\/\*$/, ""))])]
  const quoted = new RegExp(`(["'\`])(?:/ui|(${moved.map(Pattern.escape).join("|")}))(?=["'\`/?#\\\\])`, "g")

  const upstreamTarget: UpstreamUiPaths["upstreamTarget"] = (target) => {
    const question = target.indexOf("?")
    const path = question === -1 ? target : target.slice(0, question)
    const query = question === -1 ? "" : target.slice(question)
    if (crooked.test(path)) return undefined
    const below = path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined
    if (path === prefix) return `/ui${query}`
    if (below !== undefined) return (rootNames.has(firstName(below)) ? below : `/ui${below}`) + query
    return rootNames.has(firstName(path)) ? path + query : undefined
  }

  const shown: UpstreamUiPaths["shown"] = (link, origin) => {
    const absolute = link === origin || link.startsWith(`${origin}/`)
    const path = absolute ? link.slice(origin.length) || "/" : link
    if (isUi.test(path)) return prefix + path.replace(isUi, "")
    return absolute && rootNames.has(firstName(path.split(/[?#]/, 1)[0] ?? "")) ? prefix + path : link
  }

  return {
    patterns: [...patterns],
    upstreamTarget,
    shown,
    shownText: (text, origin) =>
      text
        .replaceAll(
          new RegExp(`(["'\`])${Pattern.escape(origin)}(?=(["'\`/\\\\]))`, "g"),
          (_, quote: string, next: string) => (next === "/" ? quote : quote + prefix)
        )
        .replaceAll(quoted, (_, quote: string, path: string | undefined) => quote + prefix + (path ?? "")),
    shownJson: (text, origin) =>
      text.replaceAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gs, (literal, name: string | undefined) => {
        const link = name === undefined ? unescaped(literal) : undefined
        const moved = link === undefined ? undefined : shown(link, origin)
        return moved === undefined || moved === link ? literal : JSON.stringify(moved)
      })
  }
}

const firstName = (path: string): string => path.slice(1).split("/", 1)[0] ?? ""

/** What two servers could read differently: then it might be something else that is asked for. */
const crooked = /[\\#;]|\/\/|\/\.{1,2}(?:\/|$)|%(?:2e|2f|5c|25|00)/i

const isUi = /^\/ui(?=[/?#]|$)/

const unescaped = (literal: string): string | undefined => {
  try {
    const text: unknown = JSON.parse(literal)
    return typeof text === "string" ? text : undefined
  } catch {
    return undefined
  }
}
