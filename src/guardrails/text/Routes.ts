import {
  anyChunk,
  chatRequest,
  chatResponse,
  chunk,
  completionsRequest,
  completionsResponse,
  embeddingsRequest,
  embeddingsResponse
} from "./ChatRules.ts"
import { type EventType, messagesEvents, responsesError, responsesEvents, unknownEvent } from "./EventTypes.ts"
import { batchesRequest, batchesResponse, messagesRequest, messagesResponse } from "./MessagesRules.ts"
import type { TextRoute } from "./Place.ts"
import { responsesRequest, responsesResponse } from "./ResponsesRules.ts"
import { type Rule, serviceText, unknownMember } from "./Rule.ts"

interface RouteRules {
  readonly request: Rule
  readonly response: Rule
  /** The events by their type. */
  readonly events: Readonly<Record<string, EventType>>
  /** An event of another type, or without one. */
  readonly event: EventType
}

const loose = { rule: unknownMember, ends: [] }

export const routeRules: Readonly<Record<TextRoute, RouteRules>> = {
  chat: { request: chatRequest, response: chatResponse, events: {}, event: { rule: chunk, ends: [] } },
  completions: {
    request: completionsRequest,
    response: completionsResponse,
    events: {},
    event: { rule: chunk, ends: [] }
  },
  responses: {
    request: responsesRequest,
    response: responsesResponse,
    events: responsesEvents,
    event: unknownEvent
  },
  messages: { request: messagesRequest, response: messagesResponse, events: messagesEvents, event: unknownEvent },
  message_batches: { request: batchesRequest, response: batchesResponse, events: {}, event: loose },
  embeddings: { request: embeddingsRequest, response: embeddingsResponse, events: {}, event: loose },
  // Services choose the names of members, and may send the events of any family.
  other: {
    request: serviceText("copy"),
    response: serviceText("copy"),
    events: { ...responsesEvents, ...messagesEvents, error: responsesError },
    event: { rule: anyChunk, ends: [] }
  }
}
