import { HttpApiSchema } from "effect/http-api"
import type { Page } from "../store/Paging.ts"

export const toPageResponse = <A>({ next, rows }: Page<A>) =>
  HttpApiSchema.withHeaders({ body: rows, headers: next === undefined ? {} : { "x-next-cursor": next } })
