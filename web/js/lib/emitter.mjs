// Listeners by topic. A change emits all its topics together, so that each listener runs once.

export class Emitter {
  /** @type {Map<string, ((topics: string[]) => void)[]>} */
  #listeners = new Map();

  /**
   * Call back whenever one of the topics, separated by spaces, is emitted.
   * @param {string} topics
   * @param {(topics: string[]) => void} callback gets all that were emitted together
   */
  on(topics, callback) {
    for (const topic of topics.split(" "))
      this.#listeners.set(topic, [...(this.#listeners.get(topic) ?? []), callback]);
  }

  /** Resolves the next time that a topic is emitted. @param {string} topic @returns {Promise<void>} */
  next(topic) {
    return new Promise((resolve) => {
      const callback = () => {
        const others = this.#listeners.get(topic)?.filter((listener) => listener !== callback) ?? [];
        this.#listeners.set(topic, others);
        resolve();
      };
      this.on(topic, callback);
    });
  }

  /**
   * @protected
   * @param {...string} topics one name each
   */
  emit(...topics) {
    const unheard = topics.find((topic) => topic.includes(" "));
    if (unheard) throw new Error(`A topic is one name, found "${unheard}"`);
    const callbacks = new Set(topics.flatMap((topic) => this.#listeners.get(topic) ?? []));
    for (const callback of callbacks) callback(topics);
  }
}
