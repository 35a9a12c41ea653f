import { HttpApiSchema } from "effect/http-api"
import type { Page } from "../store/Paging.ts"

/** The rows as a plain array; the header says where the list goes on. */
export const toPageResponse = <A>({ next, rows }: Page<A>) =>
  HttpApiSchema.withHeaders({ body: rows, headers: next === undefined ? {} : { "x-next-cursor": next } })
