// Keeps the page up to date: asks for it again, and changes what has changed. All that
// is shown is made by the agent, so the page is the same without this.
'use strict';
(() => {
  const every = 2000, patience = 10000;
  const live = document.getElementById('live'), pause = document.getElementById('pause');
  let timer, asking, paused = false, answered = clock();

  function clock() { return document.getElementById('asof').textContent; }

  // morph makes one element like another, child by child. What is equal is not touched,
  // so that focus, selection, scroll and what a reader has opened stay.
  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    for (const { name, value } of to.attributes) {
      if (name !== 'open' && from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      if (name !== 'open' && !to.hasAttribute(name)) from.removeAttribute(name);
    }
    const named = new Map();
    for (const child of from.children) if (child.id) named.set(child.id, child);
    let at = from.firstChild;
    for (const want of [...to.childNodes]) {
      let have = want.id ? named.get(want.id) : at;
      if (have && (have.nodeName !== want.nodeName || (have.id || '') !== (want.id || ''))) have = null;
      if (!have) {
        from.insertBefore(want, at);
        continue;
      }
      if (have === at) at = at.nextSibling;
      else from.insertBefore(have, at);
      if (have.nodeType === Node.ELEMENT_NODE) morph(have, want);
      else if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // show takes over what a page says, and keeps the keyboard where it was.
  function show(page) {
    const focus = document.activeElement;
    morph(document.getElementById('main'), page.getElementById('main'));
    if (focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true });
    document.getElementById('asof').textContent = page.getElementById('asof').textContent;
    document.title = page.title;
  }

  function say(text, lost) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle('lost', lost);
    document.documentElement.classList.toggle('lost', lost);
  }

  async function ask() {
    clearTimeout(timer);
    asking?.abort();
    asking = null; // so that it knows it was not the agent's fault
    if (paused || document.hidden) return;
    const mine = asking = new AbortController();
    const late = setTimeout(() => mine.abort(), patience), began = performance.now();
    let problem = '';
    try {
      const answer = await fetch(location.href, { signal: mine.signal, cache: 'no-store', headers: { Accept: 'text/html' } });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (mine !== asking) return;
      if (!page.getElementById('main')) problem = `answers ${answer.status}`;
      else if (page.documentElement.dataset.build !== document.documentElement.dataset.build) return location.reload();
      else show(page);
    } catch {
      if (mine !== asking) return; // another question has taken its place
      problem = 'does not answer';
    } finally {
      clearTimeout(late);
    }
    if (problem) {
      say(`The agent ${problem}: this is as of ${answered} UTC`, true);
    } else {
      answered = clock();
      say('Up to date', false);
    }
    // A page that takes long is asked for less often.
    timer = setTimeout(ask, Math.max(every, 10 * (performance.now() - began)));
  }

  function search() {
    const form = document.getElementById('filter'), query = new URLSearchParams(new FormData(form));
    if (!query.get('q')) query.delete('q');
    history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}`);
    ask();
  }

  let typing;
  document.addEventListener('input', (e) => {
    if (e.target.id !== 'q') return;
    clearTimeout(typing);
    typing = setTimeout(search, 200);
  });
  document.addEventListener('submit', (e) => {
    if (e.target.id !== 'filter') return;
    e.preventDefault();
    clearTimeout(typing);
    search();
  });
  document.addEventListener('visibilitychange', ask);
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Resume' : 'Pause';
    pause.setAttribute('aria-pressed', paused);
    say(paused ? `Paused at ${answered} UTC` : 'Up to date', false);
    ask();
  });
  pause.hidden = live.hidden = false;
  say('Up to date', false);
  timer = setTimeout(ask, every);
})();
