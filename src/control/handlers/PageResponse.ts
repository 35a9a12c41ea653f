import { HttpApiSchema } from "effect/http-api"
import type { Page } from "../store/Paging.ts"

export const toPageResponse = <A, Position>({ next, rows }: Page<A, Position>) =>
  HttpApiSchema.withHeaders({ body: rows, headers: next === undefined ? {} : { "x-next-cursor": next } })
