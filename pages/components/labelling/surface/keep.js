// What must survive a reload: answers on their way, and half-written drafts, in IndexedDB. One record an answer, so that
// two tabs at work never write over each other.

const NAME = "touchstone-labelling"

/** Opens what this browser keeps; `kept.lasting` is false where it keeps nothing (a private window). */
export async function open() {
  try {
    const base = await new Promise((resolve, reject) => {
      const asked = indexedDB.open(NAME, 1)
      asked.onupgradeneeded = () => {
        asked.result.createObjectStore("answers", { keyPath: "turn" })
        asked.result.createObjectStore("drafts", { keyPath: "place" })
      }
      asked.onsuccess = () => resolve(asked.result)
      asked.onerror = () => reject(asked.error)
    })
    return keeper(base)
  } catch {
    return keeper(null)
  }
}

function keeper(base) {
  const run = (store, mode, work) =>
    new Promise((resolve, reject) => {
      if (!base) return resolve(undefined)
      const change = base.transaction(store, mode)
      const asked = work(change.objectStore(store))
      change.oncomplete = () => resolve(asked?.result)
      change.onabort = change.onerror = () => reject(change.error)
    })
  return {
    lasting: Boolean(base),
    put: (store, record) => run(store, "readwrite", (kept) => kept.put(record)),
    remove: (store, key) => run(store, "readwrite", (kept) => kept.delete(key)),
    all: async (store) => (await run(store, "readonly", (kept) => kept.getAll())) ?? [],
    get: (store, key) => run(store, "readonly", (kept) => kept.get(key)),
  }
}

const TAB = `${NAME}-tab-${self.crypto?.randomUUID?.() ?? String(Math.random()).slice(2)}`

/** The name of this tab. As long as the tab lives, others leave its answers to it. */
export const tab = TAB
if (navigator.locks) navigator.locks.request(TAB, () => new Promise(() => {}))

/** Whether the tab that wrote a record is still there. Where a browser cannot say, it is taken to be gone: an answer
 * that is sent twice counts once. */
export async function isLive(name) {
  if (name === TAB) return true
  if (!navigator.locks) return false
  const { held } = await navigator.locks.query()
  return held.some((lock) => lock.name === name)
}
