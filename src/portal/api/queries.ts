import {
  hashKey,
  keepPreviousData,
  type QueryKey,
  type UseInfiniteQueryResult,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQueryClient
} from "@tanstack/react-query"
import { useMemo } from "react"
import { type ApiError, isRefusal } from "./ApiError.ts"
import { call, type Page, page, type Request } from "./control.ts"
import type { Method, PathOf, ResponseOf } from "./Endpoints.ts"
import type { QueryValue } from "./http.ts"
import { useIsPaused } from "./live.ts"
import { useRead, useReadPages } from "./reads.ts"
import { callTasks, tasksPath } from "./tasks.ts"

export interface ReadOptions {
  /** False waits: nothing is asked until a parameter is known, or the panel is open. */
  readonly enabled?: boolean
  /** Asks again so long after the last answer, instead of after a minute. */
  readonly refreshMs?: number
  /** Asks also where an answer of a moment ago is known. */
  readonly isAskedAnew?: boolean
}

export interface ReadOptionsOf<Body> extends ReadOptions {
  /**
   * Returns the delay until the next read of something that the person waits for, or `undefined` once it is there. A
   * pause of the live data does not hold it up.
   */
  readonly refreshAfter?: (body: Body) => number | undefined
}

/** A read on the screen is repeated so long after its last answer, whether or not live events tell of a change. */
const refreshEveryMs = 60_000

interface Read<Body> {
  readonly state: { readonly data: Body | undefined; readonly error: ApiError | null }
}

/**
 * Returns when a query reads again. Nothing does while the tab is hidden or the person has paused. A list that was read
 * further is left alone: its rows would move under the reader, and each of its pages would be a call. A refused read is
 * not repeated.
 */
export const useRefresh = <Body>({ refreshAfter, refreshMs = refreshEveryMs }: ReadOptionsOf<Body> = {}) => {
  const isPaused = useIsPaused()
  return ({ state: { data, error } }: Read<Body>): number | false => {
    const awaitedMs = data === undefined ? undefined : refreshAfter?.(data)
    if (awaitedMs !== undefined) return awaitedMs
    const isRefused = error !== null && isRefusal(error) && error.status !== 429
    return isPaused || isRefused || pageCount(data) > 1 ? false : refreshMs
  }
}

/** Returns the number of pages that a list has read. */
export const pageCount = (data: unknown): number =>
  typeof data === "object" && data !== null && "pages" in data && Array.isArray(data.pages) ? data.pages.length : 1

const useOptions = <Body>({ enabled = true, isAskedAnew = false, ...refresh }: ReadOptionsOf<Body>) => ({
  enabled,
  ...(isAskedAnew && { staleTime: 0 }),
  refetchInterval: useRefresh(refresh)
})

/** Keeps the answer before until the next one is there, unless it is about another object. */
const previousOf =
  (place: number, object: unknown) =>
  <Body>(previous: Body | undefined, query: { readonly queryKey: QueryKey } | undefined): Body | undefined =>
    hashKey([query?.queryKey[place]]) === hashKey([object]) ? previous : undefined

/** Reads one object or a short list of the control API. */
export const useApi = <P extends PathOf<"GET">>(
  path: P,
  request: Request<"GET", P>,
  options: ReadOptionsOf<ResponseOf<"GET", P>> = {}
): UseQueryResult<ResponseOf<"GET", P>, ApiError> =>
  useRead<ResponseOf<"GET", P>>({
    queryKey: [path, request.params, request.query],
    queryFn: ({ signal }) => call("GET", path, request, { signal }),
    placeholderData: previousOf(1, request.params),
    ...useOptions(options)
  })

/** The pages of a list that were read so far, as one list. */
export interface List<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly query: UseInfiniteQueryResult<unknown, ApiError>
  /** Reads the list anew, a page at a time, and keeps nothing of it. */
  readonly readPages?: (signal: AbortSignal) => AsyncIterable<ReadonlyArray<Row>>
}

/** The same list with other rows, such as without some of them. */
export const withRows = <Row, Other>(
  { query, readPages, rows }: List<Row>,
  change: (rows: ReadonlyArray<Row>) => ReadonlyArray<Other>
): List<Other> => ({
  query,
  rows: change(rows),
  ...(readPages !== undefined && { readPages: (signal) => mapPages(readPages(signal), change) })
})

async function* mapPages<Row, Other>(
  pages: AsyncIterable<ReadonlyArray<Row>>,
  change: (rows: ReadonlyArray<Row>) => ReadonlyArray<Other>
): AsyncIterable<ReadonlyArray<Other>> {
  for await (const rows of pages) yield change(rows)
}

/** Reads page after page. The next one is read once it is asked for. */
export async function* pagesOf<Row, Place>(
  read: (place: Place | undefined) => Promise<{ readonly rows: ReadonlyArray<Row>; readonly next: Place | undefined }>
): AsyncIterable<ReadonlyArray<Row>> {
  let place: Place | undefined
  do {
    const { next, rows } = await read(place)
    yield rows
    place = next
  } while (place !== undefined)
}

/** Reads a list of the control API page by page (`x-next-cursor`). */
export const useApiList = <P extends PathOf<"GET">>(
  path: P,
  request: Request<"GET", P>,
  options: ReadOptions = {}
): List<RowOf<ResponseOf<"GET", P>>> => {
  type Rows = ResponseOf<"GET", P>
  const query = useReadPages<Page<Rows>, string | undefined>({
    queryKey: [path, request.params, request.query, "pages"],
    queryFn: ({ pageParam, signal }) => page(path, request, pageParam, { signal }),
    initialPageParam: undefined,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    ...useOptions(options)
  })
  const pages = query.data?.pages
  const rows = useMemo(
    () => (pages ?? []).flatMap(({ rows }: { readonly rows: Rows }) => rowsOf<RowOf<Rows>>(rows)),
    [pages]
  )
  const readPages = (signal: AbortSignal) =>
    pagesOf<RowOf<Rows>, string>(async (cursor) => {
      const { next, rows } = await page(path, request, cursor, { signal })
      return { rows: rowsOf<RowOf<Rows>>(rows), next }
    })
  return { rows, query, readPages }
}

type RowOf<Rows> = Rows extends ReadonlyArray<infer Row> ? Row : never

const rowsOf = <Row>(rows: unknown): ReadonlyArray<Row> => (Array.isArray(rows) ? rows : [])

/** Reads from the API of tasks. The caller names the type of the response. */
export const useTasksApi = <Body>(
  path: string,
  query: Readonly<Record<string, QueryValue>> = {},
  options: ReadOptionsOf<Body> = {}
): UseQueryResult<Body, ApiError> =>
  useRead<Body>({
    queryKey: [tasksPath, path, query],
    queryFn: ({ signal }) => callTasks<Body>("GET", path, { query, signal }),
    placeholderData: previousOf(1, path),
    ...useOptions(options)
  })

/** The pages of a list of the API of tasks. `first` has what the first page says beside its rows. */
export interface TasksList<Body, Row> extends List<Row> {
  readonly first: Body | undefined
  /** How many pages were read. */
  readonly pages: number
}

/** Reads a list of the API of tasks page by page (`next_cursor`). */
export const useTasksList = <Body extends { readonly next_cursor: string | null }, Row>(
  path: string,
  query: Readonly<Record<string, QueryValue>>,
  rowsOf: (body: Body) => ReadonlyArray<Row>,
  options: ReadOptions = {}
): TasksList<Body, Row> => {
  const list = useReadPages<Body, string | undefined>({
    queryKey: [tasksPath, path, query, "pages"],
    queryFn: ({ pageParam, signal }) =>
      callTasks<Body>("GET", path, { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...useOptions(options)
  })
  const pages = list.data?.pages
  // biome-ignore lint/correctness/useExhaustiveDependencies: the reader of rows is another function in each drawing
  const rows = useMemo(() => (pages ?? []).flatMap(rowsOf), [pages])
  const readPages = (signal: AbortSignal) =>
    pagesOf<Row, string>(async (cursor) => {
      const body = await callTasks<Body>("GET", path, { query: { ...query, cursor }, signal })
      return { rows: rowsOf(body), next: body.next_cursor ?? undefined }
    })
  return { rows, first: pages?.[0], pages: pages?.length ?? 0, query: list, readPages }
}

export interface TasksWrite {
  readonly path: string
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Changes something by the API of tasks. What was read of it is read again. */
export const useTasksWrite = <Body>(): UseMutationResult<Body, ApiError, TasksWrite> => {
  const client = useQueryClient()
  return useMutation<Body, ApiError, TasksWrite>({
    mutationFn: ({ path, ...sent }) => callTasks<Body>("POST", path, sent),
    onSuccess: () => client.invalidateQueries({ queryKey: [tasksPath] })
  })
}

/** Asks the API of tasks what a change would do. Nothing is changed, so nothing is read again. */
export const useTasksCheck = <Body>(): UseMutationResult<Body, ApiError, TasksWrite> =>
  useMutation<Body, ApiError, TasksWrite>({
    mutationFn: ({ path, ...sent }) => callTasks<Body>("POST", path, sent)
  })

interface WriteOptions {
  /** The answer has a secret that is told once: it is handed on before anything is read again. */
  readonly hasSecret?: boolean
}

/**
 * Changes something by the control API. `stale` names the paths of reads that the change makes old; they are read
 * again. Nothing is shown as done before the server has said so.
 */
export const useApiWrite = <M extends Exclude<Method, "GET">, P extends PathOf<M>>(
  method: M,
  path: P,
  stale: ReadonlyArray<string>,
  { hasSecret = false }: WriteOptions = {}
): UseMutationResult<ResponseOf<M, P>, ApiError, Request<M, P>> => {
  const client = useQueryClient()
  return useMutation<ResponseOf<M, P>, ApiError, Request<M, P>>({
    mutationFn: (request) => call(method, path, request),
    // a response may have a secret, which must not stay in the memory of the page
    gcTime: 0,
    onSuccess: (_, { params }) => {
      const readAgain = Promise.all(
        stale.map((read) =>
          client.invalidateQueries({
            queryKey: [read],
            // what was deleted cannot be read again
            predicate: ({ queryKey }) =>
              method !== "DELETE" || read !== path || hashKey([queryKey[1]]) !== hashKey([params])
          })
        )
      )
      return hasSecret ? undefined : readAgain
    }
  })
}
