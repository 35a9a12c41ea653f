import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { transformResponse } from "../../../src/control/http/ResponseTransform.ts"

it.live("a change that throws costs the answer its content, and not the client its answer", () =>
  Effect.gen(function* () {
    const answered = HttpEffect.toWebHandler(
      Effect.gen(function* () {
        const { url } = yield* HttpServerRequest.HttpServerRequest
        yield* transformResponse((response) =>
          HttpServerResponse.setHeader(response, "x-path", encodeURIComponent(url.endsWith("bad") ? "\ud800" : "good"))
        )
        return HttpServerResponse.text("content")
      })
    )
    const [good, bad] = yield* Effect.promise(() =>
      Promise.all(["good", "bad"].map((path) => answered(new Request(`http://test/${path}`))))
    )
    assert.deepStrictEqual([good?.status, good?.headers.get("x-path")], [200, "good"])
    assert.deepStrictEqual([bad?.status, yield* Effect.promise(async () => bad?.text())], [500, ""])
  })
)
