import { useMemo } from "react"
import { useShownNow } from "../../address/shownTime.ts"
import { useNow } from "../../address/useNow.ts"
import { useApi, useTasksApi } from "../../api/queries.ts"
import { useSeesTasks } from "../../api/session.ts"
import type { DeadLetterQueues } from "../../api/TaskTypes.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
export const seriesPath = "/admin-ui/admin/usage/timeseries"

/** The last hour by the minute and by the status code: what the first tiles are made of. */
export const useLastHour = () => {
  const now = useShownNow()
  const until = (Math.floor(now / minuteMs) + 1) * minuteMs
  const found = useApi(seriesPath, {
    query: {
      interval: "minute",
      from: new Date(until - hourMs).toISOString(),
      to: new Date(until).toISOString(),
      split: "code",
      split_limit: 50,
      timeseries_limit: 3_000
    }
  })
  return useMemo(() => {
    const minutes = Array.from({ length: 60 }, () => 0)
    const sums = { requests: 0, refused: 0, errors: 0 }
    for (const { bucket, name, summary } of found.data ?? []) {
      const place = Math.floor((Date.parse(bucket) - (until - hourMs)) / minuteMs)
      minutes[place] = (minutes[place] ?? 0) + summary.request_count
      sums.requests += summary.request_count
      if (Number(name) >= 500) sums.errors += summary.request_count
      sums.refused += summary.policy_denial_count + summary.rate_limit_denial_count + summary.budget_denial_count
    }
    return { query: found, minutes, ...sums }
  }, [found, until])
}

/** Reads how long the gateway itself takes, and the upstream. Only requests that succeeded count, as others may not reach an upstream. */
export const useOverhead = () => {
  const now = useShownNow()
  const from = Math.floor(now / hourMs) * hourMs - hourMs
  const found = useApi(seriesPath, {
    query: { interval: "hour", from: new Date(from).toISOString(), status: "success", quantiles: "p50,p95" }
  })
  const latest = (found.data ?? []).toReversed().find(({ quantiles }) => quantiles?.gateway_ms != null)
  return { query: found, quantiles: latest?.quantiles }
}

/** Spend by the day, since the month began and for at least 30 days. */
export const useSpend = () => {
  const now = useNow(hourMs / 4)
  const today = Math.floor(now / dayMs) * dayMs
  const date = new Date(now)
  const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
  const monthEnd = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
  const from = Math.min(month, today - 29 * dayMs)
  const found = useApi(seriesPath, { query: { interval: "day", from: new Date(from).toISOString() } })
  return useMemo(() => {
    let [ofToday, ofYesterday, ofMonth, requests] = [0, 0, 0, 0]
    for (const { bucket, summary } of found.data ?? []) {
      const at = Date.parse(bucket)
      requests += summary.request_count
      if (at >= today) ofToday += summary.estimated_cost_usd
      else if (at >= today - dayMs) ofYesterday += summary.estimated_cost_usd
      if (at >= month) ofMonth += summary.estimated_cost_usd
    }
    const projected = (ofMonth * (monthEnd - month)) / Math.max(hourMs, now - month)
    return {
      query: found,
      from,
      until: today + dayMs,
      today: ofToday,
      yesterday: ofYesterday,
      month: ofMonth,
      projected,
      requests
    }
  }, [found, from, today, month, monthEnd, now])
}

/** Reads the numbers of keys, routes, services and layers, and of the audit events of a day. */
export const useInventory = (enabled: boolean) => useApi("/admin-ui/admin/system/inventory", {}, { enabled })

export interface BoardQueue {
  readonly queue: string
  readonly state: string
  readonly ready: number | null
  readonly in_work: number
  readonly waiting_for_retry: number | null
}

const boardRefreshMs = 15_000

/** The queues of tasks, where this process has tasks and the token may see them. */
export const useQueues = () => {
  const isThere = useSeesTasks()
  const found = useTasksApi<{ readonly queues: ReadonlyArray<BoardQueue> }>(
    "/queues",
    {},
    { enabled: isThere, refreshMs: boardRefreshMs }
  )
  const letters = useTasksApi<DeadLetterQueues>("/dlq/queues", {}, { enabled: isThere, refreshMs: boardRefreshMs })
  const queues = found.data?.queues ?? []
  const sum = (of: (queue: BoardQueue) => number | null) => queues.reduce((total, queue) => total + (of(queue) ?? 0), 0)
  return {
    query: found,
    isThere,
    queues,
    /** Dead letters that wait for somebody. */
    letters,
    openLetters: (letters.data?.queues ?? []).reduce((total, { open_count }) => total + open_count, 0),
    running: sum(({ in_work }) => in_work),
    waiting: sum(({ ready }) => ready) + sum(({ waiting_for_retry }) => waiting_for_retry)
  }
}
