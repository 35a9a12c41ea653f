import { HttpApiSchema } from "effect/http-api"
import type { Page } from "../store/Paging.ts"

/** Returns the rows as a plain array, with the cursor of the next page in a header. */
export const toPageResponse = <A>({ next, rows }: Page<A>) =>
  HttpApiSchema.withHeaders({ body: rows, headers: next === undefined ? {} : { "x-next-cursor": next } })
