import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RequestId } from "../api/schema/Errors.ts"
import { toResponse } from "../http/ErrorResponses.ts"
import { encodingOf } from "../http/FileEncoding.ts"
import { assetsPath, isPageRequest, pathOf, portalPath } from "../http/PortalPaths.ts"
import { notFound } from "../http/Probes.ts"
import { transformResponse } from "../http/ResponseTransform.ts"
import { ListenerSessions } from "../session/ListenerSessions.ts"
import * as InstallationFacts from "./InstallationFacts.ts"
import { type PortalFile, PortalFiles } from "./PortalFiles.ts"
import * as PortalPage from "./PortalPage.ts"

const holdersPath = `${portalPath}my`

/**
 * Answers navigations to pages with the page of the portal, which finds out by the address what to show. A middleware,
 * because the API of tasks has routes for the same paths. A listener for holders of keys has their pages alone.
 */
export const pages = HttpRouter.middleware(
  Effect.gen(function* () {
    const files = yield* PortalFiles
    const { holdersOnly } = yield* ListenerSessions
    const factsFor = yield* InstallationFacts.make
    const page = (request: HttpServerRequest.HttpServerRequest) =>
      Option.match(files, {
        onNone: () => Effect.sync(PortalPage.notBuilt),
        onSome: (portal) => Effect.map(factsFor(request), (facts) => PortalPage.respond(portal.page, facts))
      })
    return (httpEffect) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
        if (!isPageRequest(request)) return httpEffect
        return holdersOnly && !isHoldersPage(pathOf(request.url)) ? Effect.succeed(toHolders) : page(request)
      })
  }),
  { global: true }
)

const isHoldersPage = (path: string): boolean => path === holdersPath || path.startsWith(`${holdersPath}/`)

const toHolders = HttpServerResponse.redirect(holdersPath, { status: 302 })

const serveAsset = Effect.fnUntraced(function* (assets: ReadonlyMap<string, PortalFile>) {
  const { headers, url } = yield* HttpServerRequest.HttpServerRequest
  const file = assets.get(pathOf(url).slice(assetsPath.length))
  if (file === undefined) return toResponse(notFound, yield* RequestId)
  yield* transformResponse((response) => HttpServerResponse.setHeader(response, "cache-control", forever))
  const [encoding, bytes] = encodingOf(file, headers["accept-encoding"] ?? "")
  return HttpServerResponse.uint8Array(bytes, {
    contentType: file.contentType,
    headers: { vary: "accept-encoding", ...(encoding !== undefined && { "content-encoding": encoding }) }
  })
})

const forever = "public, max-age=31536000, immutable"

const assets = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const files = yield* PortalFiles
    const known = Option.match(files, { onNone: () => new Map<string, PortalFile>(), onSome: ({ assets }) => assets })
    yield* router.add("GET", `${assetsPath}*`, serveAsset(known))
  })
)

const entrances = HttpRouter.addAll(
  (["/", "/admin-ui"] as const).map((path) =>
    HttpRouter.route("GET", path, HttpServerResponse.redirect(portalPath, { status: 302 }))
  )
)

/** The files of the portal, and the paths that lead to it. */
export const layer = Layer.mergeAll(assets, entrances)
