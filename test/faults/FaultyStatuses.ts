import { shared } from "../messaging/SampleTopologies.ts"

/** What the hubs of the fault run and their test agree upon. */
export const prefix = "svc-test:"

export const kept = { history_maxlen: 100_000 }

export const topology = (streams: boolean) => shared({ status_use_streams: streams })
